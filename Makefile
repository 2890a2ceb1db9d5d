# Reprise. `make` builds build/reprise (the command) and build/reprise-rt (the in-process runtime).
#   make check    everything that CI runs           make soak     the suite, SOAK=20 times, on one core and under load
#   make bench    ratios to native                  make demo     a short look at what works
#   make unit     unit tests only                   make guests   test programs only
#   make built    all that `make check` runs, built
#   make install  PREFIX=/usr/local DESTDIR=        make format   clang-format over src, tests and tools
BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
ifeq ($(origin CC),default)
CC      := gcc
endif
JOBS    ?= 2
SOAK    ?= 20
FUZZ_SECONDS ?= 5

VERSION := 0.1

# All cores unless -j says otherwise.
MAKEFLAGS += -j$(shell nproc)

# V=1 shows whole commands.
Q := $(if $(V),,@)
tell = $(if $(V),,@echo '  $(1)	$@')

.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all built check unit guests fuzz soak bench demo install clean format setup test-programs
all: $(BUILD)/reprise $(BUILD)/reprise-rt

# ---- what must be installed first ------------------------------------------------------------------------------------
ZYDIS := $(BUILD)/zydis/libZydis-rt.a
$(ZYDIS):
	BUILD='$(BUILD)' tools/setup.sh

# Later additions to the package list reach old build directories through `make check`.
setup:
	@BUILD='$(BUILD)' tools/setup.sh
test-programs: setup
	@BUILD='$(BUILD)' tools/setup.sh tests

# ---- generated decode table ------------------------------------------------------------------------------------------
GEN := $(if $(wildcard tools/gen_decode.c),$(BUILD)/gen/decode_table.h)
$(BUILD)/gen_decode: tools/gen_decode.c Makefile | $(ZYDIS)
	$(call tell,HOST)
	$(Q)$(CC) -std=gnu11 -O1 -g -Wall -Isrc -MMD -MP -MF $@.d -o $@ $< -lZydis
$(BUILD)/gen/decode_table.h: $(BUILD)/gen_decode
	@mkdir -p $(@D)
	$(call tell,GEN)
	$(Q)$< > $@.tmp && mv $@.tmp $@

# ---- the runtime: freestanding, position independent, no libc ---------------------------------------------------------
RT_DIRS  := src/inproc src/engine src/sphere src/sphere/sys src/recorder src/ckpt/rt
RT_SRC   := $(foreach d,$(RT_DIRS),$(wildcard $d/*.c) $(wildcard $d/*.S)) src/rsp/agent.c
RT_OBJ   := $(RT_SRC:%=$(BUILD)/rt/%.o)
# No vector registers: the runtime then need not save the program's on entry. Without RELRO nothing is left to mprotect.
RT_FLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Werror=implicit-function-declaration \
            -ffreestanding -fno-stack-protector -fPIE -mgeneral-regs-only -fomit-frame-pointer -fvisibility=hidden \
            -fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns -fcf-protection=none -U_FORTIFY_SOURCE \
            -ffunction-sections -fdata-sections -Isrc -I$(BUILD)/gen -isystem $(BUILD)/zydis/include \
            -DZYAN_NO_LIBC -DZYDIS_STATIC_BUILD -DZYCORE_STATIC_BUILD -DZYDIS_DISABLE_FORMATTER -DZYDIS_DISABLE_ENCODER \
            -DREPRISE_VERSION='"$(VERSION)"' $(EXTRA_RT_FLAGS)
# Linked to the place that src/inproc/layout.h has for it: nothing is moved or relocated at the start of a process. What is small lies
# together, so that few pages are touched.
place     = $(shell sed -n 's/^\#define $(1) UL(\(0x[0-9a-f]*\)).*/\1/p' src/inproc/layout.h)
RT_LINK  := -static -no-pie -nostdlib -nostartfiles -Wl,-e,_start -Wl,--gc-sections -Wl,-z,norelro -Wl,-z,noexecstack -Wl,--build-id \
            -Wl,--fatal-warnings -Wl,--no-relax -Wl,-z,max-page-size=4096 -Wl,--sort-section=alignment -Wl,-Ttext-segment=$(call place,LAYOUT_RT)

# What recorded programs see as their vDSO.
$(BUILD)/gen/vdso.so: src/vdso/vdso.S src/vdso/vdso.lds Makefile
	@mkdir -p $(@D)
	$(call tell,VDSO)
	$(Q)$(CC) -shared -nostdlib -fPIC -Wl,-T,src/vdso/vdso.lds -Wl,-soname,linux-vdso.so.1 -Wl,--hash-style=both -Wl,--build-id \
	    -Wl,--eh-frame-hdr -Wl,-z,noexecstack -Wl,-z,max-page-size=4096 -o $@ $<
$(BUILD)/rt/src/sphere/vdso_image.S.o: $(BUILD)/gen/vdso.so
$(BUILD)/rt/%.c.o: %.c Makefile | $(ZYDIS) $(GEN)
	@mkdir -p $(@D)
	$(call tell,RT)
	$(Q)$(CC) $(RT_FLAGS) -MMD -MP -c $< -o $@
$(BUILD)/rt/%.S.o: %.S Makefile | $(ZYDIS) $(GEN)
	@mkdir -p $(@D)
	$(call tell,RT)
	$(Q)$(CC) $(RT_FLAGS) -D__ASSEMBLY__ -MMD -MP -c $< -o $@

# A source that went away must make a new link, too.
$(BUILD)/rt/objects: FORCE
	@mkdir -p $(@D)
	@echo '$(RT_OBJ)' | cmp -s - $@ || echo '$(RT_OBJ)' > $@
.PHONY: FORCE

$(BUILD)/reprise-rt: $(RT_OBJ) $(ZYDIS) Makefile tools/check_rt.sh $(BUILD)/rt/objects
	$(call tell,LINK)
	$(Q)$(CC) $(RT_LINK) -Wl,-Map,$@.map -o $@.tmp $(RT_OBJ) $(ZYDIS)
	$(Q)tools/check_rt.sh $@.tmp
	$(Q)mv $@.tmp $@

# ---- the command: static, because its own start-up is part of every `reprise run` --------------------------------------
CLI_SRC   := $(wildcard src/cli/*.c src/controller/*.c src/log/*.c src/replay/*.c src/rsp/*.c src/ckpt/*.c src/why/*.c)
CLI_OBJ   := $(CLI_SRC:%=$(BUILD)/cli/%.o)
CLI_FLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror=implicit-function-declaration -Wno-unused-parameter -Wno-missing-field-initializers -fno-pie -ffunction-sections -fdata-sections -Isrc \
             -isystem $(BUILD)/zydis/include -DZYAN_NO_LIBC -DZYDIS_STATIC_BUILD -DZYCORE_STATIC_BUILD \
             -D_GNU_SOURCE -DREPRISE_VERSION='"$(VERSION)"'

$(BUILD)/cli/%.c.o: %.c Makefile | $(ZYDIS)
	@mkdir -p $(@D)
	$(call tell,CLI)
	$(Q)$(CC) $(CLI_FLAGS) -MMD -MP -c $< -o $@
$(BUILD)/reprise: $(CLI_OBJ) Makefile
	$(call tell,LINK)
	$(Q)$(CC) -static -no-pie -pthread -Wl,--gc-sections -o $@ $(CLI_OBJ) $(ZYDIS) -ldw -lelf -lz -llzma -lbz2 -lzstd -lxxhash

# ---- tests -------------------------------------------------------------------------------------------------------------
# A test's source may say, one line each:  // cflags: ...   // libs: ...   // link: src/engine/decode.c ...
said = $$(sed -nE 's,^[/* ]+$(1): *,,p' $< | sed 's,\*/.*,,')

# Unit tests and fuzzers: programs of the host that link the sources they name.
HOST_FLAGS := -std=gnu11 -O1 -g -Wall -Wextra -Werror=implicit-function-declaration -Wno-unused-parameter -Wno-missing-field-initializers -fno-tree-loop-distribute-patterns \
              -D_GNU_SOURCE -Isrc -I$(BUILD)/gen
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/*_test.c))
FUZZ := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/*_fuzz.c))
define host_program
@mkdir -p $(@D)
$(call tell,HOST)
$(Q)$(CC) $(HOST_FLAGS) $(call said,cflags) -o $@ $< $(call said,link) \
    $(call said,libs) -Wl,--as-needed -lcmocka -lZydis
@for s in $(call said,link); do $(CC) $(HOST_FLAGS) $(call said,cflags) -MM -MP -MT $@ $$s; done > $@.d
@$(CC) $(HOST_FLAGS) $(call said,cflags) -MM -MP -MT $@ $< >> $@.d
endef
$(UNIT): $(BUILD)/unit/%: tests/unit/%.c Makefile | $(ZYDIS) $(GEN)
	$(host_program)
$(FUZZ): $(BUILD)/fuzz/%: tests/fuzz/%.c Makefile | $(ZYDIS) $(GEN)
	$(host_program)

# Guest programs: what native and translated runs are compared on.
GUEST_FLAGS := -O1 -g -pthread
GUEST_SRC   := $(wildcard tests/guest/*.c tests/guest/*.cc tests/guest/*.S)
GUESTS      := $(addprefix $(BUILD)/guest/,$(basename $(notdir $(GUEST_SRC))))
define guest
@mkdir -p $(@D)
$(call tell,GUEST)
$(Q)$(1) $(GUEST_FLAGS) -MMD -MP -MF $@.d $(call said,cflags) -o $@ $< $(call said,libs)
endef
$(BUILD)/guest/%: tests/guest/%.c Makefile | $(ZYDIS)
	$(call guest,$(CC))
$(BUILD)/guest/%: tests/guest/%.cc Makefile | $(ZYDIS)
	$(call guest,$(CXX))
$(BUILD)/guest/%: tests/guest/%.S Makefile | $(ZYDIS)
	$(call guest,$(CC))

# What a folder builds by rules of its own: append to CHECK_NEEDS there.
CHECK_NEEDS :=
-include $(wildcard tests/*/rules.mk bench/rules.mk)

RUN_TESTS = BUILD='$(BUILD)' FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run
guests: $(GUESTS)
fuzz: $(FUZZ)
built: all $(UNIT) $(FUZZ) $(GUESTS) $(CHECK_NEEDS)
unit: $(UNIT)
	$(RUN_TESTS) -k 'unit/*'
check: all $(UNIT) $(FUZZ) $(GUESTS) $(CHECK_NEEDS) | test-programs
	$(RUN_TESTS) --jobs $(JOBS)
soak: all $(UNIT) $(FUZZ) $(GUESTS) $(CHECK_NEEDS) | test-programs
	@bad=0; \
	echo 'all cores:';  $(RUN_TESTS) --jobs $(JOBS) --repeat $(SOAK) || bad=1; \
	echo 'one core:';   taskset -c 0 env $(RUN_TESTS) --jobs 1 --repeat $(SOAK) || bad=1; \
	echo 'under load:'; $(RUN_TESTS) --jobs $(JOBS) --repeat $(SOAK) --load $$(nproc) || bad=1; \
	echo 'real programs:'; BUILD='$(BUILD)' tests/compat/run.sh --repeat $(SOAK) || bad=1; \
	echo 'real programs, recorded:'; for how in --record --chaos; do BUILD='$(BUILD)' tests/compat/run.sh $$how --repeat $(SOAK) || bad=1; done; \
	echo 'recorded on two cores, replayed on one:'; BUILD='$(BUILD)' tests/compat/run.sh --record --replay-on 0 || bad=1; \
	echo 'sessions of gdb:'; GDB_SESSIONS=all $(RUN_TESTS) -k sessions --repeat $(SOAK) || bad=1; \
	echo 'a walk with gdb:'; BUILD='$(BUILD)' python3 tests/gdb/random_walk.py --moves 10000 || bad=1; \
	echo 'kills:'; KILLS=100 $(RUN_TESTS) -k record_kills || bad=1; \
	echo 'signals:'; STEPS=0 $(RUN_TESTS) -k signal_steps || bad=1; \
	echo 'races:'; for how in '' --chaos; do BUILD='$(BUILD)' tests/race/run.sh -r $(SOAK) -j $(JOBS) $$how || bad=1; done; \
	echo 'guest programs, recorded:'; for how in --record --chaos; do $(RUN_TESTS) --jobs $(JOBS) --repeat $(SOAK) $$how || bad=1; done; \
	exit $$bad

bench: all | test-programs
	BUILD='$(BUILD)' bench/run --peers
	BUILD='$(BUILD)' bench/checkpoints.py
# No `-O2`, and symbols: the demo is about its source lines.
$(BUILD)/demo/ledger: demo/ledger.c Makefile
	@mkdir -p $(@D)
	$(call tell,DEMO)
	$(Q)$(CC) -g -O1 -fno-inline -pthread -o $@ $<

demo: all $(BUILD)/demo/ledger
	BUILD='$(BUILD)' tools/demo.sh

install: all
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/lib/reprise'
	install -m 755 $(BUILD)/reprise '$(DESTDIR)$(PREFIX)/bin/reprise'
	install -m 755 $(BUILD)/reprise-rt '$(DESTDIR)$(PREFIX)/lib/reprise/reprise-rt'

# Zydis stays: it comes over the network. `rm -r build` removes it too.
clean:
	find '$(BUILD)' -mindepth 1 -maxdepth 1 ! -name zydis -exec rm -rf {} +
format:
	clang-format -i $$(git ls-files '*.c' '*.h' '*.cc' ':!tests/asm') # tests/asm has headers in assembly

# A source that has moved away, where an old list of dependencies still names it: what it was for is made anew.
src/%.c: ;
-include $(RT_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(addsuffix .d,$(UNIT) $(FUZZ) $(GUESTS)) $(BUILD)/gen_decode.d
