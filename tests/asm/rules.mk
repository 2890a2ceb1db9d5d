# Instruction tests: generated, then compiled (build.sh knows by itself what is out of date).
CHECK_NEEDS += asm-tests
.PHONY: asm-tests
asm-tests: | $(ZYDIS)
	$(Q)CC='$(CC)' tests/asm/build.sh '$(BUILD)'
