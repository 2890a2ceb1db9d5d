# Programs that share memory between processes (tests/shared/run.sh).
SHARED_TESTS := $(addprefix $(BUILD)/shared/,$(basename $(notdir $(wildcard tests/shared/*.c))))
CHECK_NEEDS += $(SHARED_TESTS)
$(BUILD)/shared/%: tests/shared/%.c Makefile | $(ZYDIS)
	$(call guest,$(CC))
-include $(addsuffix .d,$(SHARED_TESTS))
