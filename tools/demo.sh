#!/bin/bash
# make demo: one program, natively and under the engine, side by side.
BUILD=${BUILD:-build}
program=$BUILD/guest/demo
echo "Reprise runs unmodified programs out of its own code cache. Recording and replay are not there yet."
echo
echo "\$ $program"
native=$("$program" 2>&1); native_status=$?
echo "$native"; echo "(exit status $native_status)"
echo
echo "\$ $BUILD/reprise run -- $program"
ours=$("$BUILD/reprise" run -- "$program" 2>&1); our_status=$?
echo "$ours"; echo "(exit status $our_status)"
echo
if [ "$native" = "$ours" ] && [ $native_status = $our_status ]; then
    echo "Same output, same exit status."
else
    echo "THEY DIFFER."
    exit 1
fi
