/* SPDX-License-Identifier: MIT */
/*
 * box.h - what the engine tests share: the engine under test, and a container with two volumes that is
 * made for one test and leaves nothing.
 *
 * The program is test_engine ADDRESS TAR [TLS-FOLDER [FOREIGN-FOLDER]]. TAR is the root of an image with
 * /inside (inside.c), /vol and /work (10001:10001, 0700).
 */
#ifndef BERTH_TESTS_ENGINE_BOX_H
#define BERTH_TESTS_ENGINE_BOX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/id.h"
#include "runtime/engine/engine.h"

#define IMAGE "localhost/berth-test/engine:1"
#define IMAGE_VOLUME "localhost/berth-test/engine-volume:1"
#define LABEL "berth.test.engine"
#define DETAIL "berth.test.detail"

extern struct engine *g;
extern char run[ID_SIZE]; /* the label's value: this run */

/* Fails with the text of the error. */
#define OK(call)                                                                      \
	do {                                                                          \
		struct err e = { 0 };                                                 \
		int r_ = (call);                                                      \
		if (r_) {                                                             \
			print_error("%s: %s (%s)\n", #call, e.msg, err_name(e.code)); \
			fail();                                                       \
		}                                                                     \
	} while (0)

#define FAILS(code_, call)                                            \
	do {                                                          \
		int r_ = (call);                                      \
		if (r_ != -(code_))                                   \
			print_error("%s: %d %s\n", #call, r_, e.msg); \
		assert_int_equal(r_, -(code_));                       \
		assert_int_equal(e.code, code_);                      \
	} while (0)

/* Not to be moved: the spec points into it. */
struct box {
	char name[40], work[40], tmp[40], id[ENGINE_ID_SIZE];
	struct engine_label labels[2];
	struct engine_mount mounts[3];
	const char *argv[3];
	struct engine_container_spec spec;
};

void make_volume(const char *name, int64_t bytes, const struct engine_label *labels);
void box_init(struct box *b);  /* volumes and a spec; nothing is created yet */
void box_start(struct box *b); /* creates and starts */
void box_clear(struct box *b); /* removes all of it */
enum engine_state box_state(const struct box *b);

/* Reads until the end, at most 20 s; what came is in out. 0 or the -errno. */
ssize_t read_all(struct stream *s, struct buf *out);
/* The output of a program in the box, run as 10001. */
void exec_text(const struct box *b, const char *const *argv, struct buf *out);

extern const struct CMUnitTest container_tests[], stream_tests[];
extern const size_t container_tests_count, stream_tests_count;

#endif
