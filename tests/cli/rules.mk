# A runtime that runs nothing, to test the controller alone.
CHECK_NEEDS += $(BUILD)/fake_rt
$(BUILD)/fake_rt: tests/cli/fake_rt.c Makefile | $(ZYDIS)
	$(call tell,HOST)
	$(Q)$(CC) $(HOST_FLAGS) -MMD -MP -MF $@.d -o $@ $<
-include $(BUILD)/fake_rt.d

# Steps through the runtime, and is what it runs.
CHECK_NEEDS += $(BUILD)/signal_steps
$(BUILD)/signal_steps: tests/cli/signal_steps.c Makefile | $(ZYDIS)
	$(call tell,HOST)
	$(Q)$(CC) $(HOST_FLAGS) -MMD -MP -MF $@.d -o $@ $<
-include $(BUILD)/signal_steps.d
