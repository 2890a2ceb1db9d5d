#!/bin/sh
# Generates and compiles the instruction tests: build.sh BUILD_DIR puts everything into BUILD_DIR/asm.
set -eu
src=$(cd "$(dirname "$0")" && pwd)
out=${1:-build}/asm
mkdir -p "$out"
out=$(cd "$out" && pwd)
cc=${CC:-cc}
flags="-O2 -g -Wall -Wextra -I$src"

$cc $flags -o "$out/gen" "$src/gen.c" "$src/enc.c" -lZydis -lZycore
"$out/gen" "$out"
cd "$out"
$cc $flags -c -o cases.o cases.S
$cc $flags -c -o table.o -Wa,-I. "$src/table.S"
$cc $flags -c -o state.o "$src/state.S"
$cc $flags -static -no-pie -fno-pie -o forms-static "$src/forms.c" state.o table.o cases.o
$cc $flags -pie -fpie -o forms-pie "$src/forms.c" state.o table.o cases.o
