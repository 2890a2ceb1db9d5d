#!/bin/sh
# Files that the kernel would not execute, or that we cannot: 126 and one line that says why, never a crash.
. "$TESTS/cli/expect.sh"
run="$REPRISE run --"
put() { printf "$2" | dd of="$1" bs=1 seek="$3" conv=notrunc status=none; } # put FILE BYTES OFFSET
fresh() {
    cp /bin/true "$1"
    chmod 755 "$1"
}
refused() { expect 126 "reprise: ./$1: *" $run "./$1"; }

: >empty && chmod +x empty && refused empty
echo 'echo a text file without an interpreter line' >text && chmod +x text && refused text
head -c 4096 /dev/zero >zeros && chmod +x zeros && refused zeros
printf '\177ELF' >magic_only && chmod +x magic_only && refused magic_only

fresh elf32 && put elf32 '\001' 4 && put elf32 '\003\000' 18 && refused elf32 # ELFCLASS32, EM_386
fresh big_endian && put big_endian '\002' 5 && put big_endian '\000\026' 18 && refused big_endian # EM_S390
fresh aarch64 && put aarch64 '\267\000' 18 && refused aarch64       # e_machine = EM_AARCH64
fresh object && put object '\001\000' 16 && refused object          # e_type = ET_REL
fresh core_file && put core_file '\004\000' 16 && refused core_file # e_type = ET_CORE
fresh phentsize && put phentsize '\001\000' 54 && refused phentsize
fresh no_headers && put no_headers '\000\000' 56 && refused no_headers
fresh phoff && put phoff '\377\377\377\377\377\377\377\177' 32 && refused phoff

for n in 1 4 15 16 17 40 63 64 65 120 300; do
    head -c $n /bin/true >cut$n && chmod +x cut$n && refused cut$n
done

printf '#!/nonexistent/interpreter\n' >no_interpreter && chmod +x no_interpreter
printf '#!\n' >empty_line && chmod +x empty_line && refused empty_line
printf '#!./recurse\n' >recurse && chmod +x recurse && refused recurse
# The script is there, its interpreter is not: shells say 127 or 126; one line and either status will do.
$run ./no_interpreter >out 2>err
got=$?
[ $got = 126 ] || [ $got = 127 ] || wrong "missing interpreter: exit $got"
[ "$(wc -l <err)" = 1 ] && grep -q '^reprise: ' err || wrong "missing interpreter: says $(head -3 err)"
finish
