/* SPDX-License-Identifier: MIT */
/*
 * base.h - the macros every part of Berth uses: scope-exit cleanup, ownership moves, attributes.
 *
 * Needs nothing but libc; may be included by any header.
 */
#ifndef BERTH_BASE_H
#define BERTH_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NODISCARD __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The lesser and the greater of two integers, in their common type. Each argument is evaluated once. */
#define DEFINE_CHOICE_(type, name)                       \
	static inline type min_##name##_(type a, type b) \
	{                                                \
		return a < b ? a : b;                    \
	}                                                \
	static inline type max_##name##_(type a, type b) \
	{                                                \
		return a > b ? a : b;                    \
	}
DEFINE_CHOICE_(int, i)
DEFINE_CHOICE_(unsigned, u)
DEFINE_CHOICE_(long, l)
DEFINE_CHOICE_(unsigned long, ul)
DEFINE_CHOICE_(long long, ll)
DEFINE_CHOICE_(unsigned long long, ull)
/* clang-format off */
#define CHOOSE_(which, a, b)                     \
	_Generic((a) + (b),                      \
		int: which##_i_,                 \
		unsigned: which##_u_,            \
		long: which##_l_,                \
		unsigned long: which##_ul_,      \
		long long: which##_ll_,          \
		unsigned long long: which##_ull_)(a, b)
/* clang-format on */
#define MIN(a, b) CHOOSE_(min, a, b)
#define MAX(a, b) CHOOSE_(max, a, b)

/* Runs fn(&variable) when the variable leaves its scope. */
#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define _cleanup_free_ _cleanup_(cleanup_free_)
#define _cleanup_close_ _cleanup_(cleanup_close_)
#define _cleanup_fclose_ _cleanup_(cleanup_fclose_)

/* Defines fn##_cleanup_ for a pointer type whose destructor is fn; use as _cleanup_(fn##_cleanup_). */
#define DEFINE_CLEANUP(type, fn)                     \
	static inline void fn##_cleanup_(type *slot) \
	{                                            \
		if (*slot)                           \
			fn(*slot);                   \
	}

/* Moves ownership out of a _cleanup_ variable: the value is returned, the variable is emptied. */
#define STEAL_PTR(ptr)                      \
	__extension__({                     \
		__typeof__(ptr) p_ = (ptr); \
		(ptr) = NULL;               \
		p_;                         \
	})
#define STEAL_FD(fd)           \
	__extension__({        \
		int v_ = (fd); \
		(fd) = -1;     \
		v_;            \
	})

#ifdef __cppcheck__ /* whose 2.10 does not parse statement expressions */
#undef STEAL_PTR
#define STEAL_PTR(ptr) cppcheck_moves_(&(ptr))
#endif

static inline void cleanup_free_(void *slot)
{
	free(*(void **)slot);
}

static inline void cleanup_close_(const int *slot)
{
	if (*slot >= 0)
		close(*slot);
}

static inline void cleanup_fclose_(FILE **slot)
{
	if (*slot)
		fclose(*slot);
}

/*
 * Allocators for small objects of a size the program chose itself: abort when memory is gone,
 * since a Linux that overcommits does not fail them. What comes from outside goes through
 * struct buf, which has a maximum. Results are owned by the caller, free() them.
 */
void *xcalloc(size_t count, size_t size) NODISCARD __attribute__((malloc, returns_nonnull));
char *xstrdup(const char *text) NODISCARD __attribute__((malloc, returns_nonnull));
/* At most len bytes, fewer when a NUL comes first. */
char *xstrndup(const char *text, size_t len) NODISCARD __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) NODISCARD PRINTF_LIKE(1, 2) __attribute__((returns_nonnull));

#endif
