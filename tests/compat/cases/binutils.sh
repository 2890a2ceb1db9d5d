# needs: objdump readelf nm ar gcc
# tags: fast
# binutils on a large library, ar, nm, addr2line
l=/lib/x86_64-linux-gnu/libc.so.6; $RUN objdump -d --start-address=0x30000 --stop-address=0x60000 $l | sum; $RUN readelf -aW $l 2>/dev/null | sum; $RUN nm -D $l | sum; echo 'int f(void) { return 1; }' >f.c; $RUN gcc -g -c f.c; $RUN ar rcD l.a f.o; $RUN nm l.a | tail -1; $RUN size f.o | tail -1 | cut -f1-3; $RUN addr2line -fe f.o 0 | head -1; $RUN c++filt _ZNSt6vectorIiSaIiEE9push_backERKi
