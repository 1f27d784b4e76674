/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/id.h"
#include "tests/unit/rows.h"

static void ids_are_well_formed(void **state)
{
	(void)state;
	char id[ID_SIZE];
	id_new("s_", id);
	assert_int_equal(strlen(id), 22);
	assert_true(id_is("s_", id));
	id_new("abc", id);
	assert_int_equal(strlen(id), 23);
	assert_true(id_is("abc", id));
	assert_false(id_is("s_", id));
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void ids_differ(void **state)
{
	(void)state;
	static char ids[1000][ID_SIZE];
	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		id_new("", ids[i]);
	qsort(ids, ARRAY_LEN(ids), sizeof(ids[0]), compare);
	for (size_t i = 1; i < ARRAY_LEN(ids); i++)
		assert_string_not_equal(ids[i - 1], ids[i]);
}

static void every_character_is_used_in_every_place(void **state)
{
	(void)state;
	bool seen[20][256] = { 0 };
	char id[ID_SIZE];
	for (int i = 0; i < 4000; i++) {
		id_new("", id);
		for (size_t at = 0; at < 20; at++)
			seen[at][(unsigned char)id[at]] = true;
	}
	for (size_t at = 0; at < 20; at++)
		for (const char *c = "abcdefghijklmnopqrstuvwxyz234567"; *c; c++)
			assert_true(seen[at][(unsigned char)*c]);
}

static void tokens_hold_256_bits(void **state)
{
	(void)state;
	char a[ID_TOKEN_SIZE], b[ID_TOKEN_SIZE];
	id_token("bst_", a);
	id_token("bst_", b);
	assert_int_equal(strlen(a), 4 + 52);
	assert_int_equal(strncmp(a, "bst_", 4), 0);
	assert_int_equal(strspn(a + 4, "abcdefghijklmnopqrstuvwxyz234567"), 52);
	assert_string_not_equal(a, b);
}

static const struct is_row {
	const char *name, *text;
	bool want;
} is_rows[] = {
	{ "is: twenty characters behind the prefix", "s_abcdefghijklmnopqr27", true },
	{ "is: one too few", "s_abcdefghijklmnopqr2", false },
	{ "is: one too many", "s_abcdefghijklmnopqr277", false },
	{ "is: another prefix", "t_abcdefghijklmnopqr27", false },
	{ "is: upper case", "s_Abcdefghijklmnopqr27", false },
	{ "is: a digit outside base32", "s_abcdefghijklmnopqr28", false },
	{ "is: a slash", "s_abcdefghij/lmnopqr27", false },
	{ "is: nothing", "", false },
	{ "is: the prefix alone", "s_", false },
};

static void is_test(void **state)
{
	const struct is_row *row = *state;
	assert_int_equal(id_is("s_", row->text), row->want);
}

static const struct hash_row {
	const char *name, *text, *want;
} hashes[] = {
	/* FIPS 180-4's examples */
	{ "hash: nothing", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "hash: abc", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "hash: two blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
};

static void hash_test(void **state)
{
	const struct hash_row *row = *state;
	char got[ID_HASH_SIZE];
	id_hash(row->text, strlen(row->text), got);
	assert_string_equal(got, row->want);
}

static const struct equal_row {
	const char *name, *a, *b;
	bool want;
} equals[] = {
	{ "equal: the same text", "secret", "secret", true },
	{ "equal: empty is empty", "", "", true },
	{ "equal: another text", "secret", "secreT", false },
	{ "equal: a prefix", "secret", "secre", false },
	{ "equal: NULL is not the text", NULL, "secret", false },
	{ "equal: the text is not NULL", "secret", NULL, false },
	{ "equal: NULL is not NULL", NULL, NULL, false },
	{ "equal: NULL is not empty", NULL, "", false },
};

static void equal_test(void **state)
{
	const struct equal_row *row = *state;
	assert_int_equal(id_secret_equal(row->a, row->b), row->want);
}

int main(void)
{
	struct rows r = { 0 };
	rows_one(&r, "an id is its prefix and 20 characters", ids_are_well_formed);
	rows_one(&r, "a thousand ids differ", ids_differ);
	rows_one(&r, "all 32 characters come in all places", every_character_is_used_in_every_place);
	rows_one(&r, "a token is its prefix and 52 characters", tokens_hold_256_bits);
	ROWS(&r, is_test, is_rows);
	ROWS(&r, hash_test, hashes);
	ROWS(&r, equal_test, equals);
	return rows_run(&r, "id");
}
