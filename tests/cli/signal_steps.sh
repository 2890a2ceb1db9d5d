#!/bin/bash
# Signals that come at any instruction of the runtime, in front of a call that waits: STEPS=0 tries all of them since the last signal.
. "$TESTS/cli/expect.sh"
export REPRISE_DIR=$PWD/rd
"$BUILD/signal_steps" "${STEPS:-1}" "$REPRISE" run -- "$BUILD/signal_steps" >said || wrong "run: $(cat said)"
"$BUILD/signal_steps" "${STEPS:-1}" "$REPRISE" record -- "$BUILD/signal_steps" >said || wrong "record: $(cat said)"
finish
