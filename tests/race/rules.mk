# Racy programs (tests/race/run.sh).
RACE_SRC := $(wildcard tests/race/*.c tests/race/*.cc)
RACES    := $(addprefix $(BUILD)/race/,$(basename $(notdir $(RACE_SRC))))
CHECK_NEEDS += $(RACES)
.PHONY: races
races: $(RACES)
$(BUILD)/race/%: tests/race/%.c Makefile | $(ZYDIS)
	$(call guest,$(CC))
$(BUILD)/race/%: tests/race/%.cc Makefile | $(ZYDIS)
	$(call guest,$(CXX))
-include $(addsuffix .d,$(RACES))
