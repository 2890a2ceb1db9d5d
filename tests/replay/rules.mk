# A program whose recording the tests of the timeline walk on.
CHECK_NEEDS += $(BUILD)/replay/counted
$(BUILD)/replay/counted: tests/replay/counted.c Makefile | $(ZYDIS)
	@mkdir -p $(@D)
	$(call tell,GUEST)
	$(Q)$(CC) -O1 -g -pthread -no-pie -o $@ $<
