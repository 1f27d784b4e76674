/* SPDX-License-Identifier: MIT */
#include "runtime/agent/tar_header.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define OCTAL_MAX 077777777777ll /* eleven digits: sizes and times of ustar */
#define NS_PER_S 1000000000l
#define TYPE_PAX 'x'
#define NUMBER_SIZE 48
#define NAME_SIZE (PATH_MAX + 1) /* with the "/" of a folder */

/* POSIX.1-2001, pax(1), "ustar Interchange Format" */
struct ustar {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, linkname[100], magic[6],
		version[2], uname[32], gname[32], devmajor[8], devminor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct ustar) == TAR_BLOCK, "a header is one block");

/* The records of a pax header being written; there is always room. */
struct records {
	char *at;
	size_t used;
};

static size_t digits(size_t n)
{
	size_t count = 1;

	while (n /= 10)
		count++;
	return count;
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts itself. */
static void put_record(struct records *r, const char *key, const char *value, size_t len)
{
	size_t rest = strlen(key) + len + 3, total = rest + digits(rest);
	char head[NUMBER_SIZE];

	total = rest + digits(total);
	int n = snprintf(head, sizeof(head), "%zu %s=", total, key);
	memcpy(r->at + r->used, head, (size_t)n);
	memcpy(r->at + r->used + n, value, len);
	r->used += total;
	r->at[r->used - 1] = '\n';
}

/* A text goes into ustar when its readers cannot take it for something else. */
static bool fits(const char *text, size_t len, size_t room)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] >= 0x80)
			return false;
	return len <= room;
}

static void put_text(struct records *r, const char *key, const char *text, char *field, size_t room)
{
	size_t len = strlen(text);

	if (!fits(text, len, room))
		put_record(r, key, text, len);
	memcpy(field, text, len < room ? len : room);
}

static void put_octal(char *field, size_t size, uint64_t value)
{
	field[size - 1] = '\0';
	for (size_t i = size - 1; i-- > 0; value >>= 3)
		field[i] = (char)('0' + (value & 7));
}

static void put_size(struct records *r, uint64_t size, struct ustar *u)
{
	char text[NUMBER_SIZE];
	bool large = size > OCTAL_MAX;

	if (large) {
		int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)size);
		put_record(r, "size", text, (size_t)n);
	}
	put_octal(u->size, sizeof(u->size), large ? 0 : size);
}

/* A time before 1970 counts its nanoseconds forward from the second before; its text is one number. */
static void put_mtime(struct records *r, const struct timespec *t, struct ustar *u)
{
	bool negative = t->tv_sec < 0, whole = t->tv_nsec == 0, large = negative || t->tv_sec > OCTAL_MAX;
	char text[NUMBER_SIZE];

	if (large || !whole) {
		bool borrow = negative && !whole;
		long long s = borrow ? t->tv_sec + 1 : t->tv_sec;
		long ns = borrow ? NS_PER_S - t->tv_nsec : t->tv_nsec;
		int n = snprintf(text, sizeof(text), "%s%llu.%09ld", negative ? "-" : "",
				 s < 0 ? -(unsigned long long)s : (unsigned long long)s, ns);
		put_record(r, "mtime", text, (size_t)n);
	}
	put_octal(u->mtime, sizeof(u->mtime), large ? 0 : (uint64_t)t->tv_sec);
}

/* Owners are nobody's business outside of the sandbox. */
static void finish(struct ustar *u, char type)
{
	unsigned sum = 0;

	put_octal(u->uid, sizeof(u->uid), 0);
	put_octal(u->gid, sizeof(u->gid), 0);
	put_octal(u->devmajor, sizeof(u->devmajor), 0);
	put_octal(u->devminor, sizeof(u->devminor), 0);
	u->type = type;
	memcpy(u->magic, "ustar", sizeof(u->magic));
	memcpy(u->version, "00", sizeof(u->version));
	memset(u->sum, ' ', sizeof(u->sum)); /* as which it is counted */
	for (size_t i = 0; i < sizeof(*u); i++)
		sum += ((const unsigned char *)u)[i];
	put_octal(u->sum, sizeof(u->sum) - 1, sum);
}

static void finish_pax(struct ustar *u, size_t size)
{
	memcpy(u->name, "./PaxHeaders/0", sizeof("./PaxHeaders/0"));
	put_octal(u->mode, sizeof(u->mode), 0644);
	put_octal(u->size, sizeof(u->size), size);
	put_octal(u->mtime, sizeof(u->mtime), 0);
	finish(u, TYPE_PAX);
}

size_t tar_header_encode(const struct tar_member *m, uint8_t out[TAR_HEADER_MAX])
{
	struct ustar u = { 0 }, pax = { 0 };
	struct records r = { (char *)out + TAR_BLOCK, 0 };
	char name[NAME_SIZE];

	snprintf(name, sizeof(name), "%s%s", m->name, m->type == TAR_DIR ? "/" : "");
	put_text(&r, "path", name, u.name, sizeof(u.name));
	put_text(&r, "linkpath", m->target ? m->target : "", u.linkname, sizeof(u.linkname));
	put_octal(u.mode, sizeof(u.mode), m->mode);
	put_size(&r, m->size, &u);
	put_mtime(&r, &m->mtime, &u);
	finish(&u, (char)m->type);

	size_t at = 0;
	if (r.used > 0) {
		finish_pax(&pax, r.used);
		memcpy(out, &pax, sizeof(pax));
		size_t filled = (r.used + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
		memset(r.at + r.used, 0, filled - r.used);
		at = TAR_BLOCK + filled;
	}
	memcpy(out + at, &u, sizeof(u));
	return at + sizeof(u);
}
