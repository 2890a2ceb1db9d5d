# `reprise replay` on a target without a program, to test the protocol with a real gdb.
CHECK_NEEDS += $(BUILD)/gdb/fake_replay $(BUILD)/gdb/fake_program
FAKE_REPLAY := tests/gdb/fake_replay.c $(wildcard src/rsp/*.c) src/cli/debug.c src/cli/debug_files.c src/cli/gdb_script.c \
               src/cli/find_command.c src/controller/complain.c src/controller/where.c src/log/place.c src/log/recording.c src/log/frame.c src/log/json.c src/log/event.c
$(BUILD)/gdb/fake_replay: $(FAKE_REPLAY) $(wildcard src/rsp/*.h) src/cli/debug.h src/cli/gdb_script.h tests/unit/fake_target.h Makefile | $(ZYDIS)
	@mkdir -p $(@D)
	$(call tell,HOST)
	$(Q)$(CC) $(HOST_FLAGS) -pthread -o $@ $(FAKE_REPLAY) -lxxhash -lzstd
$(BUILD)/gdb/fake_program: tests/gdb/fake_program.S Makefile | $(ZYDIS)
	@mkdir -p $(@D)
	$(call tell,GUEST)
	$(Q)$(CC) -nostdlib -static -no-pie -Wl,-Ttext=0x401000 -Wl,-Tdata=0x404000 -Wl,--build-id -o $@ $<

# Programs whose recordings gdb is tried on (sessions.py): NAME[_VARIANT].
GDB_PROGRAMS := $(addprefix $(BUILD)/gdb/,steps steps_static steps_static_pie steps_nopie steps_o2 steps_stripped steps_stripped_nopie steps_nodebug \
                signals threads throws family long shares advice late origin unmaps cancel strings naps spawns pushes kinds rounds contends spins)
CHECK_NEEDS += $(GDB_PROGRAMS)
GDB_FLAGS_steps_static := -static
GDB_FLAGS_steps_static_pie := -static-pie
GDB_FLAGS_steps_nopie := -no-pie
GDB_FLAGS_steps_o2 := -O2
GDB_FLAGS_steps_stripped := -s
GDB_FLAGS_steps_stripped_nopie := -s -no-pie
GDB_FLAGS_steps_nodebug := -g0
GDB_FLAGS_threads := -pthread
GDB_FLAGS_shares := -pthread
GDB_FLAGS_cancel := -pthread
GDB_FLAGS_late := -pthread
GDB_FLAGS_origin := -O2
define gdb_program
$(1): $$(wildcard tests/gdb/$(firstword $(subst _, ,$(notdir $(1)))).c tests/gdb/$(firstword $(subst _, ,$(notdir $(1)))).cc) Makefile tests/gdb/rules.mk | $$(ZYDIS)
	@mkdir -p $$(@D)
	$$(call tell,GUEST)
	$$(Q)$$(if $$(filter %.cc,$$<),$$(CXX),$$(CC)) -g -gno-column-info -O0 $$(GDB_FLAGS_$(notdir $(1))) -o $$@ $$<
endef
$(foreach p,$(GDB_PROGRAMS),$(eval $(call gdb_program,$(p))))
