/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - what the fuzz targets share.
 *
 * tests/fuzz/fuzz_NAME.c holds one target and its property, tests/fuzz/corpus/NAME/ the inputs.
 * `make fuzz-replay` runs the corpus, `make fuzz SECONDS=60` looks for more; what it finds is
 * added to the corpus with its repair.
 */
#ifndef BERTH_TESTS_FUZZ_H
#define BERTH_TESTS_FUZZ_H

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the run when a property does not hold. */
#define MUST(property)                                                                                \
	do {                                                                                          \
		if (!(property)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #property); \
			abort();                                                                      \
		}                                                                                     \
	} while (0)

#endif
