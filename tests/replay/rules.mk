# Programs whose recordings the tests of the timeline walk on.
REPLAY_PROGRAMS := $(BUILD)/replay/counted $(BUILD)/replay/states
CHECK_NEEDS += $(REPLAY_PROGRAMS)
$(REPLAY_PROGRAMS): $(BUILD)/replay/%: tests/replay/%.c Makefile | $(ZYDIS)
	@mkdir -p $(@D)
	$(call tell,GUEST)
	$(Q)$(CC) -O1 -g -pthread -no-pie -o $@ $<
