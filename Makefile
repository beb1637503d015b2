# ratelimit.so: rate limiting inside Redis. `make help` lists what there is; all that is built lands in build/.

SHELL         := /bin/bash
.SHELLFLAGS   := -euo pipefail -c
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS     += --no-print-directory

ifeq ($(origin CC),default)
CC            := gcc
endif
BUILD         := build
OUT           := $(BUILD)# asan and cov build into folders of their own
PORT          := 6379
FUZZ_SECONDS  := 20
ARGS          :=

SRC  := $(wildcard src/*.c src/*/*.c)
ALGO := $(wildcard src/algo/*.c)
UNIT := $(patsubst tests/unit/%.c,$(OUT)/unit/%,$(wildcard tests/unit/test_*.c))
FUZZ := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla -Wstrict-prototypes -Wmissing-prototypes -Werror
COMPILE  := -std=c11 -D_GNU_SOURCE -g -fPIC -fvisibility=hidden -fno-common $(WARN) -Isrc
VARIANT  := -O3 -fno-plt
LINK     := -shared -Wl,-z,defs -Wl,-z,relro,-z,now
SANITIZE := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all

# redismodule.h: the one given as REDISMODULE_H=, else the system's, else fetched once.
ifdef REDISMODULE_H
HEADER := $(REDISMODULE_H)
else ifeq ($(shell $(CC) -E -include redismodule.h -x c /dev/null >/dev/null 2>&1 && echo yes),)
HEADER := $(BUILD)/include/redismodule.h
endif

# The server: a label of .ci/fetch-server.sh as SERVER=, any binary as REDIS_SERVER=, else the machine's own.
ifdef SERVER
REDIS_SERVER := $(BUILD)/servers/$(SERVER)/redis-server
endif
REDIS_SERVER ?= $(or $(shell command -v redis-server),$(BUILD)/servers/default/redis-server)

# Nothing that Python leaves behind falls outside of build/.
export PYTHONPYCACHEPREFIX          := $(abspath $(BUILD)/pycache)
export HYPOTHESIS_STORAGE_DIRECTORY := $(abspath $(BUILD)/hypothesis)
export RUFF_CACHE_DIR               := $(abspath $(BUILD)/ruff)
PYTHON := $(BUILD)/venv/bin/python
PYTEST := $(PYTHON) -m pytest -o cache_dir=$(abspath $(BUILD)/pytest) -n 2 --timeout 120

.PHONY: all help run test unit server servers asan lint format bench instructions fuzz cov clean FORCE

all: $(OUT)/ratelimit.so ## build build/ratelimit.so; CC=gcc or clang, REDISMODULE_H=path/to/redismodule.h

help: ## this list
	@sed -nE 's/^([a-z]+):.*## (.*)/make \1\t\2/p' Makefile | expand -t 20

# ---- the module

$(OUT)/ratelimit.so: $(SRC:src/%.c=$(OUT)/obj/%.o)
	$(CC) $(LINK) $(VARIANT) -o $@ $^

# The algorithms know no server: they do not even get the path to its header.
$(OUT)/obj/%.o: HEADER_PATH := $(if $(HEADER),-isystem $(dir $(HEADER)))
$(OUT)/obj/algo/%.o: HEADER_PATH :=
$(OUT)/obj/%.o: src/%.c $(OUT)/flags | $(HEADER)
	@mkdir -p $(@D)
	$(CC) $(COMPILE) $(VARIANT) $(HEADER_PATH) -MMD -MP -c -o $@ $<

$(BUILD)/include/redismodule.h:
	@.ci/fetch-header.sh $@

# Written only when compiler or flags change, so that CC=clang after CC=gcc builds anew.
FLAGS := $(CC) $(COMPILE) $(VARIANT) $(HEADER)
$(OUT)/flags: FORCE | tools-build
	@mkdir -p $(@D)
	@echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' >$@

-include $(shell find $(OUT)/obj $(OUT)/unit -name '*.d' 2>/dev/null)

# ---- what the machine lacks is installed, group by group

TOOLS := $(addprefix tools-,build server test lint fuzz count)
.PHONY: $(TOOLS)
$(TOOLS): tools-%:
	@CC='$(firstword $(CC))' REDIS_SERVER='$(REDIS_SERVER)' .ci/install.sh $*

$(BUILD)/servers/default/redis-server: | tools-server
	@mkdir -p $(@D)
	@ln -sf "$$(command -v redis-check-rdb)" $@

$(BUILD)/servers/%/redis-server:
	@.ci/fetch-server.sh $*

$(BUILD)/venv/installed: tests/requirements.txt | tools-test
	python3 -m venv --clear $(BUILD)/venv
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# ---- try it

run: all $(REDIS_SERVER) tools-server ## start a Redis with the module on PORT=6379, installing what is missing
	@mkdir -p $(BUILD)/run
	@if (exec 3<>/dev/tcp/127.0.0.1/$(PORT)) 2>/dev/null; then \
	    echo "Port $(PORT) is taken. Try: make run PORT=$$(($(PORT) + 1))" >&2; exit 1; fi
	@printf '%s\n' '' \
	    'Starting Redis with ratelimit.so on port $(PORT). In another terminal, a few times until it refuses:' '' \
	    '    redis-cli -p $(PORT) RL.TOKENBUCKET user:42 5/m' \
	    '    redis-cli -p $(PORT) RL.STATE user:42' '' \
	    'Ctrl-C ends it.' ''
	@$(REDIS_SERVER) --port $(PORT) --bind 127.0.0.1 --dir $(BUILD)/run --save '' --appendonly no --loglevel warning \
	    --loadmodule $(abspath $(OUT)/ratelimit.so)

# ---- tests

test: ## unit, then server
	@$(MAKE) unit
	@$(MAKE) server

unit: $(UNIT) ## the algorithms alone, under the address and undefined-behaviour sanitizers
	@for t in $^; do $$t; done

UNIT_FLAGS := $(SANITIZE)
UNIT_ALGO  := $(ALGO:src/algo/%.c=$(OUT)/unit/obj/%.o)
$(OUT)/unit/%: tests/unit/%.c $(UNIT_ALGO)
	$(CC) $(COMPILE) $(UNIT_FLAGS) -Itests/unit -MMD -MP -MF $@.d -MT $@ -o $@ $< $(UNIT_ALGO)
$(OUT)/unit/obj/%.o: src/algo/%.c $(OUT)/flags
	@mkdir -p $(@D)
	$(CC) $(COMPILE) $(UNIT_FLAGS) -MMD -MP -c -o $@ $<

server: $(OUT)/ratelimit.so $(REDIS_SERVER) $(BUILD)/venv/installed ## the module in a server; SERVER=valkey-8.1, ARGS="-k name"
	RATELIMIT_SO=$(abspath $<) REDIS_SERVER=$(abspath $(REDIS_SERVER)) $(PYTEST) tests/server $(ARGS)

LABELS = $(shell .ci/fetch-server.sh --list)
servers: $(LABELS:%=$(BUILD)/servers/%/redis-server) ## fetch every server that SERVER= may name

# The server knows nothing of sanitizers, so libasan must come first in its process: tests/server puts it there, and
# nowhere else. With a shared jemalloc (Debian's) RedisModule_Alloc is libasan's malloc then; RL_LIBC_ALLOC is for the
# others. Undefined behaviour traps: only libasan writes reports to a file, those of forked children included.
REPORT   := $(abspath $(BUILD)/asan/report)
ASAN     := CC=gcc OUT=$(BUILD)/asan VARIANT='$(SANITIZE) -fsanitize-undefined-trap-on-error -DRL_LIBC_ALLOC=1'
ASAN_ENV := ASAN_OPTIONS=detect_leaks=0:handle_segv=2:handle_sigill=2:handle_abort=2:exitcode=99:log_path=$(REPORT)
asan: unit ## unit and server tests, with the sanitizers in the module too
	@rm -f $(REPORT)*
	@$(MAKE) all $(ASAN)
	@status=0; preload=$$(ldd $(BUILD)/asan/ratelimit.so | awk '/libasan/ {print $$3}'); \
	$(ASAN_ENV) RATELIMIT_PRELOAD=$$preload $(MAKE) server $(ASAN) || status=$$?; \
	for report in $(REPORT)*; do [ ! -e $$report ] || { cat $$report; status=1; }; done; exit $$status

cov: $(BUILD)/venv/installed ## line coverage by file
	@rm -rf $(BUILD)/cov
	@$(MAKE) unit server CC=gcc OUT=$(BUILD)/cov VARIANT='-O0 --coverage' UNIT_FLAGS='-O0 --coverage'
	@$(PYTHON) -m gcovr --root . --filter src/ --txt - $(BUILD)/cov

fuzz: $(FUZZ) ## each fuzzer for FUZZ_SECONDS=20
	@$(if $(FUZZ),,echo 'No fuzzers: there is no tests/fuzz/fuzz_*.c')
	@for f in $^; do mkdir -p $$f.corpus; \
	    $$f -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -artifact_prefix=$$f. $$f.corpus; done

$(BUILD)/fuzz/%: tests/fuzz/%.c $(ALGO) $(wildcard src/algo/*.h tests/fuzz/*.h) | tools-fuzz
	@mkdir -p $(@D)
	clang $(COMPILE) $(SANITIZE) -fsanitize=fuzzer -o $@ $< $(ALGO)

BENCH := RATELIMIT_SO=$(abspath $(OUT)/ratelimit.so) REDIS_SERVER=$(abspath $(REDIS_SERVER)) $(PYTHON) tests/bench
bench: all $(REDIS_SERVER) $(BUILD)/venv/installed tools-server ## what a call costs, and how that grows; writes docs/benchmarks.md; ARGS=--quick or --full
	@$(BENCH)/bench.py $(ARGS)

instructions: all $(REDIS_SERVER) $(BUILD)/venv/installed tools-count ## instructions per call; fails where a path grew; ARGS=--record
	@$(BENCH)/instructions.py $(ARGS)

# ---- form

lint: $(BUILD)/venv/installed tools-lint ## format, layers, lengths, scripts, and no warning from gcc or clang
	@.ci/lint.sh
	@for cc in gcc clang; do $(MAKE) --silent all CC=$$cc OUT=$(BUILD)/lint/$$cc; done
	@echo 'lint: all is well'

format: $(BUILD)/venv/installed ## make src/ and tests/ look as lint wants them
	@.ci/lint.sh --format

clean: ## remove build/
	rm -rf $(BUILD)
