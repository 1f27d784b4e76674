# Hostile and ordinary clients against the HTTP server over a manager without an engine. MODE=asan and MODE=tsan work too;
# with BERTH_URL and BERTH_TOKEN set, pytest in tests/http asks that berthd instead.

HTTP_SRC := $(wildcard tests/http/*.c)
HTTP_LIB := $(patsubst %.c,$(OBJ)/%.o,$(wildcard base/*.c) $(wildcard api/*.c) manager/process_piece.c) $(OBJ)/api/openapi_text.o

$(OUT)/tests/http/guard_server: $(HTTP_SRC:%.c=$(OBJ)/%.o) $(HTTP_LIB)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

.PHONY: http
http: $(OUT)/tests/http/guard_server ## hostile clients against the HTTP server; needs no engine
	$(Q)GUARD_SERVER=$< setarch -R /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/http
