# needs: nasm ld objdump
# tags: fast
# nasm, ld, objdump, readelf, strip: a program without libc
printf 'global _start\nsection .text\n_start: mov eax, 1\n mov edi, 1\n lea rsi, [rel m]\n mov edx, 6\n syscall\n mov eax, 60\n mov edi, 9\n syscall\nsection .data\nm: db "hello", 10\n' >a.asm; $RUN nasm -f elf64 a.asm && $RUN ld -o a a.o && $RUN ./a; echo "status $?"; $RUN objdump -d a | tail -4; $RUN strip a; $RUN readelf -hW a | grep -c :; $RUN ./a; echo "status $?"
