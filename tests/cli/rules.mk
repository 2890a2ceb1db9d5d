# A runtime that runs nothing, to test the controller alone.
CHECK_NEEDS += $(BUILD)/fake_rt
$(BUILD)/fake_rt: tests/cli/fake_rt.c Makefile | $(ZYDIS)
	$(call tell,HOST)
	$(Q)$(CC) $(HOST_FLAGS) -MMD -MP -MF $@.d -o $@ $<
-include $(BUILD)/fake_rt.d
