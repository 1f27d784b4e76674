# What Berth costs, against the alternatives in the same run; included by tests/tests.mk. Figures: docs/PERFORMANCE.md.
#
#   BENCH_ENGINE=docker (default) or podman     BENCH_QUICK=1: fewer rounds, some 40 s instead of some 4 minutes

BENCH_SRC := $(wildcard tests/bench/*.c)

$(OUT)/tests/bench/client: $(BENCH_SRC:%.c=$(OBJ)/%.o) $(OUT)/libberth.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

.PHONY: bench
bench: all $(OUT)/tests/bench/client ## what it costs, as ratios (BENCH_ENGINE=docker|podman, BENCH_QUICK=1)
	$(Q)BERTH_BUILD=$(abspath $(OUT)) /usr/bin/python3 tests/bench/bench.py
