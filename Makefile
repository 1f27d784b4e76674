# Berth: the one entry. `make help` lists the targets.
#
#   MODE=release (default, into build/)   MODE=asan | tsan | debug (into build/MODE/)
#   CC=gcc (default) or clang

MODE    ?= release
CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))
OUT     := $(if $(filter release,$(MODE)),build,build/$(MODE))
OBJ     := $(OUT)/obj
VERSION := $(shell sed -n 's/^\#\# \([0-9][0-9.]*\).*/\1/p' CHANGELOG.md 2>/dev/null | head -n 1)
PREFIX  ?= /usr/local
DESTDIR ?=

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith \
	-Wformat=2 -Wundef -Wvla -Wwrite-strings -Wcast-qual -Wconversion -Wno-sign-conversion \
	-Wimplicit-fallthrough -Wnull-dereference -Werror
ifeq ($(findstring clang,$(CC)),)
WARN += -Wlogical-op -Wduplicated-cond -Wduplicated-branches
else
WARN += -Wno-gnu-auto-type
endif

HARDEN := -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection -fcf-protection
MODE_release := -O2 -g $(HARDEN)
MODE_debug   := -Og -g3
MODE_asan    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
MODE_tsan    := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
MODE_fuzz    := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
$(if $(MODE_$(MODE)),,$(error MODE=$(MODE) is none of release debug asan tsan fuzz))

LIBS   := libcurl jansson libmicrohttpd sqlite3 libcrypto
CFLAGS := -std=gnu17 -D_GNU_SOURCE -DBERTH_VERSION='"$(VERSION)"' -I. -I$(OUT)/gen -fPIE -pthread $(MODE_$(MODE)) $(WARN) \
	$(shell pkg-config --cflags $(LIBS) 2>/dev/null)
LDFLAGS := -pie -pthread -Wl,-z,relro,-z,now,-z,noexecstack $(filter -fsanitize%,$(MODE_$(MODE)))
CLI_LIBS := $(shell pkg-config --libs libarchive 2>/dev/null)
LDLIBS := $(shell pkg-config --libs $(LIBS) 2>/dev/null)

# Everything but the programs' mains and the agent is one archive that programs and tests link.
LIB_DIRS := base runtime/protocol runtime/engine runtime manager/store manager/policy manager api
# Of the agent there is only what its tests want to call.
LIB_SRC  := $(foreach d,$(LIB_DIRS),$(wildcard $(d)/*.c)) runtime/agent/archive_name.c
LIB_OBJ  := $(LIB_SRC:%.c=$(OBJ)/%.o) $(OBJ)/runtime/agent_image.o $(OBJ)/gen/migrations.o $(OBJ)/api/openapi_text.o
CLI_OBJ  := $(patsubst %.c,$(OBJ)/%.o,$(wildcard cli/*.c))

.PHONY: all
all: $(OUT)/berthd $(OUT)/berth $(OUT)/berth-agent ## the three programs, into build/ (MODE=release, debug, asan, tsan)

$(OUT)/libberth.a: $(LIB_OBJ)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(OUT)/berthd: $(OBJ)/berthd/main.o $(OUT)/libberth.a
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(OUT)/berth: $(CLI_OBJ) $(OUT)/libberth.a
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) $(CLI_LIBS)

# The agent is static and runs in any image; it is built the same in every mode but debug.
AGENT_SRC := $(wildcard runtime/agent/*.c) $(wildcard runtime/protocol/*.c)
AGENT_OBJ := $(AGENT_SRC:%.c=$(OBJ)/agent/%.o)
AGENT_CFLAGS := -std=gnu17 -D_GNU_SOURCE -DBERTH_VERSION='"$(VERSION)"' -I. -Os -g $(WARN) -fno-pie -fno-asynchronous-unwind-tables \
	-fstack-protector-strong -fstack-clash-protection -ffunction-sections -fdata-sections
# zstd has its slow strategies in one large table. The agent names the fast one (codec_encode.c), so their code,
# 190 KB, is left out: whoever comes there aborts.
ZSTD_SLOW := $(foreach s,greedy lazy lazy2,$(foreach d,_ _dictMatchState_ _extDict_ _dedicatedDictSearch_,$(s)$(d) $(s)$(d)row)) \
	$(foreach d,_ _dictMatchState_ _extDict_,btlazy2$(d))
ZSTD_SLOW := $(patsubst %_,%,$(ZSTD_SLOW:%=ZSTD_compressBlock_%)) ZSTD_row_update ZSTD_insertAndFindFirstIndex \
	ZSTD_dedicatedDictSearch_lazy_loadDictionary
AGENT_LDFLAGS := -static -no-pie -Wl,--gc-sections,--build-id=sha1,-z,noexecstack -s \
	$(foreach f,$(ZSTD_SLOW),-Wl,--wrap=$(f),--defsym=__wrap_$(f)=abort)
# PID 1's memory counts the pages around those that it touches: what it uses of libc comes first, together.
$(OUT)/berth-agent: $(AGENT_OBJ)
	$(Q)$(CC) $(AGENT_LDFLAGS) -o $@ $^ -lc -larchive -lz -lzstd

$(OBJ)/agent/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(AGENT_CFLAGS) -MMD -MP -c -o $@ $<

# The agent's binary, the migrations and the description of the API travel inside berthd.
$(OBJ)/runtime/agent_image.o: runtime/agent_image.S $(OUT)/berth-agent
	@mkdir -p $(@D)
	$(Q)$(CC) -DAGENT_PATH='"$(OUT)/berth-agent"' -c -o $@ $<

$(OBJ)/api/openapi_text.o: api/openapi_text.S api/openapi.json
	@mkdir -p $(@D)
	$(Q)$(CC) -c -o $@ $<

MIGRATIONS := $(sort $(wildcard migrations/*.sql))
$(OUT)/gen/migrations.S: Makefile $(MIGRATIONS)
	@mkdir -p $(@D)
	@{ echo '.section .rodata'; \
	   for f in $(MIGRATIONS); do n=$$(basename $$f .sql); \
	     printf '1: .asciz "%s"\n2: .incbin "%s"\n3: .byte 0\n.pushsection .data.rel.ro.migrations,"aw"\n.balign 8\n.quad 1b, 2b, 3b - 2b\n.popsection\n' $$n $$f; \
	   done; \
	   printf '.section .data.rel.ro.migrations,"aw"\n.balign 8\n.quad 0, 0, 0\n'; \
	   printf '.section .data.rel.ro,"aw"\n.section .note.GNU-stack,"",@progbits\n'; } >$@.tmp
	@sed -i '1i .section .data.rel.ro.migrations,"aw"\n.balign 8\n.globl store_migrations\nstore_migrations:' $@.tmp
	@mv $@.tmp $@
$(OBJ)/gen/migrations.o: $(OUT)/gen/migrations.S
	@mkdir -p $(@D)
	$(Q)$(CC) -c -o $@ $<

$(OBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

Q ?= @
-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)

# ---- running it ----

.PHONY: up down image standalone
up: ## builds and starts everything on this machine, and runs a first command
	@setup/up.sh
down: ## undoes `make up`
	@setup/down.sh
image: ## (re)builds the sandbox image into the engine that SANDBOX_ENGINE names
	@images/build.sh
standalone: all ## builds the image with berthd in it, a sandbox of its own, into the same engine
	@images/standalone.sh

.PHONY: clean
clean: ## removes build/
	rm -rf build

include tests/tests.mk
