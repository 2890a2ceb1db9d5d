# Programs whose recordings the tests of the timeline walk on.
REPLAY_PROGRAMS := $(BUILD)/replay/counted $(BUILD)/replay/states $(BUILD)/replay/sharers $(BUILD)/replay/windows \
	$(BUILD)/replay/tracer $(BUILD)/replay/borrowers
CHECK_NEEDS += $(REPLAY_PROGRAMS)
$(REPLAY_PROGRAMS): $(BUILD)/replay/%: tests/replay/%.c Makefile | $(ZYDIS)
	@mkdir -p $(@D)
	$(call tell,GUEST)
	$(Q)$(CC) -O1 -g -pthread -no-pie -o $@ $<
# One with values of known origin, for why.sh.
CHECK_NEEDS += $(BUILD)/replay/origins
$(BUILD)/replay/origins: tests/replay/origins.c Makefile | $(ZYDIS)
	@mkdir -p $(@D)
	$(call tell,GUEST)
	$(Q)$(CC) -O1 -g -pthread -no-pie -o $@ $<
# One that writes to what is watched in many ways, on a page that it writes to all the time, for hot.sh.
CHECK_NEEDS += $(BUILD)/replay/hot
$(BUILD)/replay/hot: tests/replay/hot.c Makefile | $(ZYDIS)
	@mkdir -p $(@D)
	$(call tell,GUEST)
	$(Q)$(CC) -O1 -g -no-pie -o $@ $<
