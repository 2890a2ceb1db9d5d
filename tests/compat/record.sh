#!/bin/bash
# What $RUN is under `run.sh --record`: records the command into $RECORDINGS and keeps a copy of its output for comparison.
dir=$(mktemp -d "$RECORDINGS/XXXXXX") || exit 125
exec "$REPRISE" record ${RECORD_OPTIONS:-} -o "$dir/rec" -- "$@" > >(trap '' INT TERM HUP; tee "$dir/out" || : >"$dir/cut")
