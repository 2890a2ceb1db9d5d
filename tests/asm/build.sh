#!/bin/sh
# Generates and compiles the instruction tests: build.sh BUILD_DIR puts everything into BUILD_DIR/asm.
set -eu
src=$(cd "$(dirname "$0")" && pwd)
out=${1:-build}/asm
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [ -e "$out/done" ] && [ -z "$(find "$src" -newer "$out/done" -type f)" ]; then
    exit 0
fi
rm -f "$out/done"
cc=${CC:-cc}
flags="-O2 -g -Wall -Wextra -I$src"

$cc $flags -o "$out/gen" "$src/gen.c" "$src/gen_seq.c" "$src/enc.c" -lZydis -lZycore
"$out/gen" "$out"
cd "$out"
$cc $flags -c -o cases.o cases.S
$cc $flags -c -o table.o -Wa,-I. "$src/table.S"
$cc $flags -c -o state.o "$src/state.S"
$cc $flags -static -no-pie -fno-pie -o forms-static "$src/forms.c" state.o table.o cases.o
$cc $flags -pie -fpie -o forms-pie "$src/forms.c" state.o table.o cases.o

# The stack of a program with nested functions is executable; smc.c wants that.
flow="$src/flow.c $src/smc.c $src/flow_start.S $src/flow_branch.S $src/flow_odd.S"
$cc $flags -static -no-pie -fno-pie -Wl,--no-warn-execstack -o flow-static $flow -pthread
$cc $flags -pie -fpie -Wl,--no-warn-execstack -o flow-pie $flow -pthread
touch done
