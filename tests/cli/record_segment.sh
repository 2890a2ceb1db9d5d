#!/bin/bash
# What a System V segment holds from before the recording is part of it.
set -u
fail() { echo "$*"; "$guest" remove "$id"; exit 1; }
guest=$BUILD/guest/sysv_segment
id=$("$guest" make) || exit 1
for how in "" read-only; do
    want=$("$guest" use "$id" read-only)
    got=$("$REPRISE" record -o "r$how" -- "$guest" use "$id" $how) || fail "recording failed"
    [ "$got" = "$want" ] || fail "recorded: $got, natively $want"
    again=$("$REPRISE" replay -a "r$how") || fail "replay failed"
    [ "$again" = "$got" ] || fail "replayed: $again, recorded $got"
done
"$guest" remove "$id"
