# The HTTP server over a manager without an engine, for tests/http; included by tests/tests.mk or given to make by -f.

HTTP_SRC := tests/http/guard_server.c tests/http/fake_manager.c
HTTP_LIB := $(patsubst %.c,$(OBJ)/%.o,$(wildcard base/*.c) $(wildcard api/*.c))

$(OUT)/tests/http/guard_server: $(HTTP_SRC:%.c=$(OBJ)/%.o) $(HTTP_LIB)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

.PHONY: http
http: $(OUT)/tests/http/guard_server ## hostile clients against the HTTP server (no engine needed)
	$(Q)GUARD_SERVER=$< /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/http
