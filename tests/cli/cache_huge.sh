#!/bin/bash
# Translations of a program that does not fit into the library area are kept, and recordings of it replay.
. "$TESTS/cli/kept.sh"
export REPRISE_DIR=$PWD/rd
program=$BUILD/guest/huge_program
warm_up "$program"
is_warm "$program"
same "$program"
expect 0 '' "$REPRISE" record -- "$program"
expect 0 '' "$REPRISE" replay -a
cmp -s out native.out || wrong "replayed: $(cat out)"
finish
