# Tests, lint, fuzzing and installation; included by the Makefile.

# ---- unit tests: tests/unit/test_*.c, each a cmocka program; other files there are linked to all of them ----

UNIT_SRC  := $(wildcard tests/unit/test_*.c)
UNIT_HELP := $(filter-out $(UNIT_SRC),$(wildcard tests/unit/*.c))
UNIT_BIN  := $(UNIT_SRC:%.c=$(OUT)/%)
# cmocka 2 calls deprecated what cmocka 1 has no other name for.
$(OBJ)/tests/%.o: CFLAGS += -Wno-conversion -Wno-cast-qual -Wno-shadow -Wno-null-dereference -Wno-deprecated-declarations

# What the command line's tests link, its main left out.
$(OUT)/libcli.a: $(filter-out %/main.o,$(CLI_OBJ))
	@mkdir -p $(@D) && rm -f $@
	$(Q)$(AR) rcs $@ $^

$(UNIT_BIN): $(OUT)/%: $(OBJ)/%.o $(UNIT_HELP:%.c=$(OBJ)/%.o) $(OUT)/libcli.a $(OUT)/libberth.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) $(CLI_LIBS) -lcmocka
.SECONDARY: $(UNIT_SRC:%.c=$(OBJ)/%.o)

.PHONY: unit
unit: $(UNIT_BIN) ## unit tests (MODE=asan or tsan: with that sanitizer)
	$(Q)tests/programs.sh $(UNIT_BIN)

# ---- fuzzing: tests/fuzz/fuzz_NAME.c, its inputs in tests/fuzz/corpus/NAME ----

FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN := $(FUZZ_SRC:%.c=$(OUT)/%)
# libFuzzer brings its own main; everything else takes the replay driver's.
FUZZ_MAIN := $(if $(filter fuzz,$(MODE)),,$(OBJ)/tests/fuzz/replay.o)

$(FUZZ_BIN): $(OUT)/%: $(OBJ)/%.o $(FUZZ_MAIN) $(OUT)/libberth.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(if $(FUZZ_MAIN),,-fsanitize=fuzzer) -o $@ $^ $(LDLIBS)
.SECONDARY: $(FUZZ_SRC:%.c=$(OBJ)/%.o)

.PHONY: fuzz-replay fuzz fuzz-run
fuzz-replay: ## fuzz corpora through their targets, under ASan and UBSan
ifeq ($(MODE),asan)
fuzz-replay: $(FUZZ_BIN)
	$(Q)tests/programs.sh $(FUZZ_BIN)
else
	$(Q)$(MAKE) --no-print-directory MODE=asan $@
endif

SECONDS ?= 60
fuzz: ## looks for new inputs with clang's libFuzzer, SECONDS=60 for each target
	$(Q)$(MAKE) --no-print-directory CC=clang MODE=fuzz fuzz-run
fuzz-run: $(FUZZ_BIN)
	$(Q)for t in $(FUZZ_BIN); do name=$${t##*/fuzz_}; mkdir -p build/fuzz/found/$$name; \
	  echo "== $$name"; $$t -max_total_time=$(SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
	    -artifact_prefix=build/fuzz/found/ build/fuzz/found/$$name tests/fuzz/corpus/$$name || exit 1; done

# ---- lint: each gate is a target of its own; `make -k lint` runs on after a failure ----

LINT_DIRS := base runtime manager api cli berthd tests
LINT_SRC  := $(sort $(shell find $(LINT_DIRS) -name '*.c' 2>/dev/null))
LINT_ALL  := $(LINT_SRC) $(filter-out tests/lint/cppcheck.h,$(sort $(shell find $(LINT_DIRS) -name '*.h' 2>/dev/null)))
LINT_SH   := $(sort $(shell find . -path ./build -prune -o -path ./.git -prune -o -name '*.sh' -print) $(wildcard cli/berth.bash))
LINT_OUT  := build/lint
LINT_CFLAGS := -std=gnu17 -D_GNU_SOURCE -DBERTH_VERSION='"0"' -I. $(shell pkg-config --cflags $(LIBS) 2>/dev/null)

.PHONY: lint lint-format lint-layers lint-banned lint-size lint-sh lint-cppcheck lint-tidy lint-clang
lint: lint-format lint-layers lint-banned lint-size lint-sh lint-clang lint-cppcheck lint-tidy ## format, layers, banned words, sizes, shellcheck, clang, cppcheck, clang-tidy
	@echo "lint: all gates passed"

.PHONY: format
format: ## lays all sources out by .clang-format
	$(Q)clang-format -i $(LINT_ALL)
lint-format:
	$(Q)clang-format --dry-run -Werror $(LINT_ALL)
lint-layers:
	$(Q)awk -f tests/lint/layers.awk tests/lint/layers.txt $(filter-out tests/%,$(LINT_ALL))
lint-banned:
	$(Q)awk -f tests/lint/banned.awk tests/lint/banned.txt $(LINT_ALL)
lint-size:
	$(Q)tests/lint/size.sh $(LINT_ALL)
lint-sh:
	$(Q)shellcheck -x -P SCRIPTDIR $(LINT_SH)
lint-clang:
	$(Q)$(MAKE) --no-print-directory -j2 CC=clang MODE=debug OUT=build/clang all
lint-cppcheck:
	@mkdir -p $(LINT_OUT)/cppcheck
	$(Q)cppcheck --quiet -j2 --cppcheck-build-dir=$(LINT_OUT)/cppcheck --std=c11 --enable=warning,performance,portability \
	  --inline-suppr --include=tests/lint/cppcheck.h --suppressions-list=tests/lint/cppcheck.txt --error-exitcode=1 -D__cppcheck__ -D__x86_64__ -D_GNU_SOURCE -DBERTH_VERSION='"0"' -I. \
	  $(filter-out tests/%,$(LINT_SRC))

# clang-tidy is slow: a stamp for each file, older than the file and its headers when it must run again.
TIDY := $(LINT_SRC:%=$(LINT_OUT)/%.tidy)
lint-tidy:
	$(Q)$(MAKE) --no-print-directory -k -j2 lint-tidy-files
.PHONY: lint-tidy-files
lint-tidy-files: $(TIDY)
$(TIDY): $(LINT_OUT)/%.tidy: % .clang-tidy tests/.clang-tidy
	@mkdir -p $(@D)
	$(Q)clang-tidy --quiet --warnings-as-errors='*' $< -- $(LINT_CFLAGS) 2>$@.err || { cat $@.err; exit 1; }
	@clang $(LINT_CFLAGS) -MM -MP -MT $@ -MF $@.d $<
	@touch $@
-include $(wildcard $(TIDY:%=%.d))

# ---- everything ----

# Suites of pytest over the built programs. tests/NAME/NAME.mk, where there is one, says itself how `make NAME` goes.
SUITES := agent cli http integration
OWN_MK := $(wildcard $(SUITES:%=tests/%/*.mk))
.PHONY: $(SUITES)
$(filter-out $(patsubst tests/%/,%,$(dir $(OWN_MK))),$(SUITES)): all
	$(Q)/usr/bin/python3 -m pytest -q -ra -p no:cacheprovider tests/$@
include $(OWN_MK)

# The engine client against each engine: all sources there but inside.c, which run.sh puts into a container.
ENGINE_SRC := $(filter-out %/inside.c,$(wildcard tests/engine/*.c))
$(OUT)/tests/engine/test_engine: $(ENGINE_SRC:%.c=$(OBJ)/%.o) $(OUT)/libberth.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka
.PHONY: engine
engine: $(OUT)/tests/engine/test_engine
	$(Q)docker=$$(tests/engines/docker.sh start) && podman=$$(tests/engines/podman.sh start) && \
	  tests/engine/run.sh $< $$docker $$podman

include tests/bench/bench.mk

.PHONY: test
test: ## everything above and the agent, engine and integration tests on a real Docker and Podman
	$(Q)tests/run.sh

# ---- installation ----

bindir  := $(DESTDIR)$(PREFIX)/bin
mandir  := $(DESTDIR)$(PREFIX)/share/man
unitdir := $(DESTDIR)$(PREFIX)/lib/systemd/system
compdir := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
confdir := $(DESTDIR)/etc/berth
MAN     := $(wildcard packaging/man/*.1 packaging/man/*.8)

.PHONY: install uninstall
install: all ## programs, systemd unit, man pages, completion (PREFIX=/usr/local, DESTDIR)
	install -D -t $(bindir) $(OUT)/berthd $(OUT)/berth
	install -d $(unitdir)
	sed 's|^ExecStart=/usr/local/|ExecStart=$(PREFIX)/|' packaging/berthd.service >$(unitdir)/berthd.service
	chmod 0644 $(unitdir)/berthd.service
	for m in $(MAN); do install -D -m 0644 -t $(mandir)/man$${m##*.} $$m; done
	install -D -m 0644 cli/berth.bash $(compdir)/berth
	test -e $(confdir)/berthd.env || install -D -m 0600 packaging/berthd.env $(confdir)/berthd.env

uninstall: ## removes what install put there, but for the configuration
	rm -f $(bindir)/berthd $(bindir)/berth $(unitdir)/berthd.service $(compdir)/berth
	for m in $(notdir $(MAN)); do rm -f $(mandir)/man$${m##*.}/$$m; done

# Every target with a comment behind two hashes.
.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
