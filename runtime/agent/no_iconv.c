/* SPDX-License-Identifier: MIT */
/*
 * In the place of libc's iconv: there is none. libarchive asks for one for the names in pax headers; when it
 * gets none they stay the bytes that they are. libc's own would look for modules in the sandbox's files and
 * load what it finds there (iconv_open(3), GCONV_PATH).
 */
#include <errno.h>
#include <iconv.h>

iconv_t iconv_open(const char *tocode, const char *fromcode)
{
	(void)tocode;
	(void)fromcode;
	errno = EINVAL;
	return (iconv_t)-1; /* NOLINT(performance-no-int-to-ptr): as iconv_open(3) says it */
}

size_t iconv(iconv_t cd, char **inbuf, size_t *inbytesleft, char **outbuf, size_t *outbytesleft)
{
	(void)cd;
	(void)inbuf;
	(void)inbytesleft;
	(void)outbuf;
	(void)outbytesleft;
	errno = EINVAL;
	return (size_t)-1;
}

int iconv_close(iconv_t cd)
{
	(void)cd;
	return 0;
}
