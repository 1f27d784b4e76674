/* SPDX-License-Identifier: MIT */
/*
 * In: libarchive reads the tar, all that is written is written here, through descriptors of folders that are
 * reached without a symlink, since other jobs may change the tree meanwhile. Each entry is written or refused
 * for itself; what ends it all is an archive that cannot be read on, a full disk or a limit.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "runtime/agent/archive_name.h"
#include "runtime/agent/archives.h"
#include "runtime/agent/beneath.h"
#include "runtime/agent/codec.h"
#include "runtime/agent/deposit.h"
#include "runtime/agent/entry.h"
#include "runtime/agent/fd.h"
#include "runtime/agent/findings.h"
#include "runtime/agent/folders.h"
#include "runtime/agent/place.h"
#include "runtime/agent/tar_header.h"

#define MEMORY_MAX (512ul << 20) /* address space: libarchive's lists are as long as the archive wants */
#define HEADER_MAX (4ull << 20)  /* with all that stands before an entry: names, lists of holes */
#define MODE_MASK (0777 & ~022)  /* the entry's bits under umask 022, never set-id or sticky */
#define FOLDER (O_PATH | O_DIRECTORY | O_CLOEXEC)
#define FOLDER_MODE 0700 /* until all is in it */
#define NS_PER_S 1000000000l

struct unpack {
	int root;
	struct archive *tar;
	struct folders folders;
	uint64_t headers, written;
	uint64_t left_of_header; /* bytes that may still be read for the next one */
	bool damaged;            /* the archive cannot be read on */
	struct findings findings;
	struct decoder in;
};

/* Where an entry goes: its folder, made and opened, and its name in there. */
struct spot {
	int dir;
	const char *name;
};

static la_ssize_t feed(struct archive *tar, void *ctx, const void **ret)
{
	struct unpack *u = ctx;
	ssize_t n = decoder_read(&u->in, ret);

	if (n > 0 && (uint64_t)n > u->left_of_header)
		n = decoder_fail(&u->in, E2BIG, "a header is too large");
	else if (n > 0)
		u->left_of_header -= (uint64_t)n;
	if (n < 0)
		archive_set_error(tar, u->in.sys, "%s", u->in.why);
	return n;
}

static struct timespec mtime_of(struct archive_entry *e)
{
	struct timespec t = { archive_entry_mtime(e), archive_entry_mtime_nsec(e) };

	if (!archive_entry_mtime_is_set(e))
		return (struct timespec){ .tv_nsec = UTIME_OMIT };
	/* libarchive reads "-1.5" as -1 and 0.5; the kernel counts nanoseconds forward (utimensat(2)) */
	if (t.tv_sec < 0 && t.tv_nsec > 0)
		t = (struct timespec){ t.tv_sec - 1, NS_PER_S - t.tv_nsec };
	return t;
}

static int find_spot(const struct unpack *u, const char *path, struct spot *ret)
{
	char parent[PATH_MAX] = "";
	const char *slash = strrchr(path, '/');

	if (slash)
		memcpy(parent, path, (size_t)(slash - path));
	*ret = (struct spot){ beneath_make(u->root, parent), slash ? slash + 1 : path };
	return ret->dir < 0 ? -1 : 0;
}

static int damaged(struct unpack *u)
{
	u->damaged = true;
	errno = EBADMSG;
	return -1;
}

/* Will the file, ending there, fit into what one archive may write? */
static int check_room(const struct unpack *u, int64_t end)
{
	if (end >= 0 && (uint64_t)end <= BUILTIN_UNPACK_BYTES - u->written)
		return 0;
	errno = E2BIG;
	return -1;
}

static int write_at(int fd, const uint8_t *bytes, size_t len, int64_t offset)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, bytes, len, offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		bytes += n;
		len -= (size_t)n;
		offset += n;
	}
	return 0;
}

/* The file's bytes where they belong, holes left out. Its size; -1. */
static int64_t copy(struct unpack *u, int fd)
{
	const void *bytes;
	size_t len;
	la_int64_t offset, end = 0;
	int rc;

	while ((rc = archive_read_data_block(u->tar, &bytes, &len, &offset)) == ARCHIVE_OK) {
		if (check_room(u, offset) < 0 || check_room(u, offset + (int64_t)len) < 0 ||
		    write_at(fd, bytes, len, offset) < 0)
			return -1;
		if (offset + (int64_t)len > end)
			end = offset + (int64_t)len;
	}
	return rc == ARCHIVE_EOF ? end : damaged(u);
}

/* A sparse file may end in a hole: its header knows. */
static int fill(struct unpack *u, int fd, struct archive_entry *e, int64_t *ret_size)
{
	int64_t size = copy(u, fd), told = archive_entry_size_is_set(e) ? archive_entry_size(e) : 0;

	if (size >= 0 && told > size) {
		if (check_room(u, told) < 0 || ftruncate(fd, told) < 0)
			return -1;
		size = told;
	}
	*ret_size = size;
	return size < 0 ? -1 : 0;
}

static int put_file(struct unpack *u, struct archive_entry *e, const char *path, const struct spot *spot)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, mtime_of(e) };
	struct deposit d;
	int64_t size = 0;

	(void)path;
	int rc = deposit_open(&d, spot->dir);
	if (rc == 0 && (fill(u, d.fd, e, &size) < 0 || fchmod(d.fd, archive_entry_perm(e) & MODE_MASK) < 0 ||
			futimens(d.fd, times) < 0 || deposit_publish(&d, spot->name) < 0))
		rc = -1;
	int sys = errno;
	deposit_close(&d);
	errno = sys;
	if (rc == 0) {
		u->written += (uint64_t)size;
		u->findings.done.bytes += (uint64_t)size;
	}
	return rc;
}

/* One that is there already is taken as it is. */
static int make_folder(const struct spot *spot)
{
	struct stat st;

	if (mkdirat(spot->dir, spot->name, FOLDER_MODE) == 0)
		return 0;
	if (errno != EEXIST || fstatat(spot->dir, spot->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	errno = S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
	return S_ISDIR(st.st_mode) ? 0 : -1;
}

static int put_folder(struct unpack *u, struct archive_entry *e, const char *path, const struct spot *spot)
{
	struct timespec mtime = mtime_of(e);

	if (make_folder(spot) < 0)
		return -1;
	return folders_note(&u->folders, path, archive_entry_perm(e) & MODE_MASK, &mtime);
}

static int put_link(struct unpack *u, struct archive_entry *e, const char *path, const struct spot *spot)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, mtime_of(e) };

	(void)u;
	(void)path;
	return deposit_link(spot->dir, spot->name, archive_entry_symlink(e), times);
}

/* clang-format off */
static const struct kind {
	unsigned type;
	int (*put)(struct unpack *u, struct archive_entry *e, const char *path, const struct spot *spot);
	const char *why; /* it is refused */
} KINDS[] = {
	{ AE_IFREG,  put_file,   NULL },
	{ AE_IFDIR,  put_folder, NULL },
	{ AE_IFLNK,  put_link,   NULL },
	{ AE_IFIFO,  NULL, "a FIFO" },
	{ AE_IFCHR,  NULL, "a device" },
	{ AE_IFBLK,  NULL, "a device" },
	{ AE_IFSOCK, NULL, "a socket" },
};
/* clang-format on */
static const struct kind HARD_LINK = { 0, NULL, "a hard link" },
			 UNKNOWN = { 0, NULL, "of a type that is unknown" };

static const struct kind *kind_of(struct archive_entry *e)
{
	if (archive_entry_hardlink(e))
		return &HARD_LINK;
	for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++)
		if (KINDS[i].type == archive_entry_filetype(e))
			return &KINDS[i];
	return &UNKNOWN;
}

/* What may be known without a look at the disk: 0 and the path, or the errno and why. */
static int judge(struct archive_entry *e, const struct kind *kind, const char *name, char path[PATH_MAX],
		 const char **ret_why)
{
	const char *target = archive_entry_symlink(e);
	int sys = archive_name_judge(name, path, ret_why);

	if (sys != 0)
		return sys;
	*ret_why = kind->why;
	if (!kind->put)
		return EINVAL;
	if (kind->type == AE_IFLNK)
		return archive_target_judge(path, target ? target : "", ret_why);
	if (*path == '\0' && kind->type != AE_IFDIR) {
		*ret_why = "its name is the folder's";
		return EISDIR;
	}
	return 0;
}

/* clang-format off */
static const struct hitch {
	int sys;
	bool ends_it;    /* what hinders this entry will hinder the others */
	const char *why;
} HITCHES[] = {
	{ ELOOP,   false, "a symlink stands in its way" },
	{ EISDIR,  false, "a folder stands in its place" },
	{ ENOTDIR, false, "a file stands in its way" },
	{ E2BIG,   true,  "more than is taken from one archive" },
	{ ENOSPC,  true,  NULL },
	{ EDQUOT,  true,  NULL },
	{ ENOMEM,  true,  NULL },
	{ ENFILE,  true,  NULL },
	{ EMFILE,  true,  NULL },
	{ EIO,     true,  NULL },
};
/* clang-format on */

static const struct hitch *hitch_of(int sys)
{
	static const struct hitch OTHER = { 0, false, NULL };

	for (size_t i = 0; i < sizeof(HITCHES) / sizeof(HITCHES[0]); i++)
		if (HITCHES[i].sys == sys)
			return &HITCHES[i];
	return &OTHER;
}

static int put(struct unpack *u, struct archive_entry *e, const struct kind *kind, const char *path)
{
	struct spot spot;

	if (*path == '\0') /* the folder itself, which is not the archive's to change */
		return 0;
	if (find_spot(u, path, &spot) < 0)
		return -1;
	int rc = kind->put(u, e, path, &spot), sys = errno;
	close(spot.dir);
	errno = sys;
	return rc;
}

static const char *name_of(struct archive_entry *e)
{
	const char *name = archive_entry_pathname(e);
	return name ? name : "";
}

/* 0, or -1 when it must end. */
static int take_entry(struct unpack *u, struct archive_entry *e)
{
	char path[PATH_MAX];
	const char *name = name_of(e), *why = NULL;
	const struct kind *kind = kind_of(e);

	int sys = judge(e, kind, name, path, &why);
	if (sys != 0) {
		findings_refuse(&u->findings, name, sys, why);
		return 0;
	}
	if (put(u, e, kind, path) == 0) {
		u->findings.done.entries++;
		return 0;
	}
	sys = errno;
	const struct hitch *hitch = hitch_of(sys);
	if (u->damaged)
		return -1;
	if (hitch->ends_it)
		findings_end(&u->findings, sys, name, hitch->why);
	else
		findings_refuse(&u->findings, name, sys, hitch->why);
	return hitch->ends_it ? -1 : 0;
}

/* What comes next: an entry, one whose header is broken, the end, or nothing that could be read. */
enum next { NEXT_ENTRY, NEXT_BROKEN, NEXT_END, NEXT_DAMAGED };

/*
 * A warning says that a part of the header was not understood, and that leaves no more than half an entry;
 * but for a name that is not of the charset it is said to be of, which is taken as its bytes.
 */
static enum next next_entry(struct unpack *u, struct archive_entry **ret)
{
	if (u->headers > 0 && archive_read_data_skip(u->tar) < ARCHIVE_WARN)
		return NEXT_DAMAGED;
	int64_t before = archive_filter_bytes(u->tar, 0);
	u->left_of_header = HEADER_MAX;
	int rc = archive_read_next_header(u->tar, ret);
	u->left_of_header = UINT64_MAX;
	if (rc == ARCHIVE_WARN)
		return archive_errno(u->tar) == EILSEQ ? NEXT_ENTRY : NEXT_BROKEN;
	if (rc != ARCHIVE_EOF)
		return rc == ARCHIVE_OK ? NEXT_ENTRY : NEXT_DAMAGED;
	/* libarchive takes an archive that ends without its mark, a block of zeros, for whole */
	return archive_filter_bytes(u->tar, 0) >= before + TAR_BLOCK ? NEXT_END : NEXT_DAMAGED;
}

static void say_damaged(struct unpack *u)
{
	const char *text = archive_error_string(u->tar);

	if (u->in.sys != 0)
		findings_end(&u->findings, u->in.sys, u->in.why, NULL);
	else if (archive_errno(u->tar) == ENOMEM)
		findings_end(&u->findings, ENOMEM, text, NULL);
	else if (u->in.eof)
		findings_end(&u->findings, EBADMSG,
			     u->headers == 0 ? "it is no tar archive" : "the archive is cut off", NULL);
	else
		findings_end(&u->findings, EBADMSG,
			     u->headers == 0 ? "it is no tar archive" : "the archive is damaged", text);
}

/* Behind the tar there may be zeros; and the checksum of what holds it, which must be right. */
static void read_to_the_end(struct unpack *u)
{
	const void *bytes;

	while (decoder_read(&u->in, &bytes) > 0)
		;
	if (u->in.sys != 0)
		findings_end(&u->findings, u->in.sys, u->in.why, NULL);
	while (u->in.sys == 0 && read(STDIN_FILENO, u->in.in, sizeof(u->in.in)) > 0)
		; /* our reader is done, but whoever sends is not to see a broken pipe */
}

static void take_all(struct unpack *u)
{
	struct archive_entry *e;
	enum next next;

	while ((next = next_entry(u, &e)) <= NEXT_BROKEN) {
		if (++u->headers > BUILTIN_UNPACK_ENTRIES) {
			findings_end(&u->findings, E2BIG, "more entries than are taken from one archive",
				     NULL);
			return;
		}
		if (next == NEXT_BROKEN)
			findings_refuse(&u->findings, name_of(e), EBADMSG, archive_error_string(u->tar));
		else if (take_entry(u, e) < 0)
			break;
	}
	if (u->damaged || next == NEXT_DAMAGED)
		say_damaged(u);
	else if (next == NEXT_END)
		read_to_the_end(u);
}

static int open_tar(struct unpack *u)
{
	u->tar = archive_read_new();
	return u->tar && archive_read_support_format_tar(u->tar) == ARCHIVE_OK ? 0 : -1;
}

/* The folder, made with its parents where it is missing; this path may have symlinks. -1 with errno. */
static int open_root(const char *path)
{
	_cleanup_place_ struct place p = { .dir = -1 };
	int fd = open(path, FOLDER);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (place_find_folder(&p, path) < 0 || place_make(&p) < 0 || mkdirat(p.dir, p.rest, 0777) < 0)
		return -1;
	return openat(p.dir, p.rest, FOLDER | O_NOFOLLOW);
}

static void unpack(struct unpack *u)
{
	if (archive_read_open(u->tar, u, NULL, feed, NULL) == ARCHIVE_OK)
		take_all(u);
	else
		say_damaged(u);
	folders_apply(&u->folders, u->root, &u->findings);
}

int unpack_run(int argc, char **argv)
{
	const struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };
	struct unpack u = { .root = -1, .left_of_header = UINT64_MAX };
	int codec = codec_find(argv[1]);

	(void)argc;
	(void)setrlimit(RLIMIT_AS, &memory);
	if (findings_init(&u.findings) < 0 || folders_init(&u.folders) < 0 || open_tar(&u) < 0 ||
	    decoder_init(&u.in, STDIN_FILENO, (enum codec)codec, BUILTIN_UNPACK_BYTES) < 0)
		return 1;
	if (codec < 0)
		findings_end(&u.findings, EINVAL, "no such format", NULL);
	else if ((u.root = open_root(argv[0])) < 0)
		findings_end(&u.findings, errno, NULL, NULL);
	else
		unpack(&u);
	close(STDIN_FILENO); /* what is left of it is of no use, and its sender must not wait */
	archive_read_free(u.tar);
	decoder_clear(&u.in);
	return findings_tell(&u.findings, STDOUT_FILENO) < 0;
}
