# `reprise replay` on a target without a program, to test the protocol with a real gdb.
CHECK_NEEDS += $(BUILD)/gdb/fake_replay $(BUILD)/gdb/fake_program
FAKE_REPLAY := tests/gdb/fake_replay.c $(wildcard src/rsp/*.c) src/cli/debug.c src/cli/debug_files.c src/cli/gdb_script.c \
               src/cli/find_command.c src/cli/where.c src/log/place.c src/log/recording.c src/log/frame.c src/log/json.c src/log/event.c
$(BUILD)/gdb/fake_replay: $(FAKE_REPLAY) $(wildcard src/rsp/*.h) src/cli/debug.h src/cli/gdb_script.h tests/unit/fake_target.h Makefile
	@mkdir -p $(@D)
	$(call tell,HOST)
	$(Q)$(CC) $(HOST_FLAGS) -pthread -o $@ $(FAKE_REPLAY) -lxxhash -lzstd
$(BUILD)/gdb/fake_program: tests/gdb/fake_program.S Makefile | $(ZYDIS)
	@mkdir -p $(@D)
	$(call tell,GUEST)
	$(Q)$(CC) -nostdlib -static -no-pie -Wl,-Ttext=0x401000 -Wl,-Tdata=0x404000 -Wl,--build-id -o $@ $<
