#!/bin/bash
# Images belong to a file as it was: changed libraries and programs, patched text and second mappings never get old code.
. "$TESTS/cli/kept.sh"
command -v gcc >/dev/null || { echo "no gcc"; exit 77; }
lib() { # lib FILE VALUE
    {
        for i in $(seq 60); do echo "int f$i(int x) { return x > $i ? x * $i : x + $2; }"; done
        echo "int value(void) { int s = 0;"
        for i in $(seq 60); do echo "s += f$i($i);"; done
        echo "return s - 1830 - 60 * $2 + $2; }"
    } >lib.c
    gcc -O1 -fno-inline -shared -fPIC -o "$1" lib.c
}
cat >user.c <<'C'
#include <stdio.h>
int value(void);
int main(void) { printf("%d\n", value()); return 0; }
C
lib libv.so 11
gcc -o user user.c -L. -lv -Wl,-rpath,"$PWD"
warm_up ./user
is_warm ./user
same ./user
lib new.so 22 && cat new.so >libv.so # in place: the same inode
same ./user
warm_up ./user && is_warm ./user
lib new.so 33 && mv new.so libv.so # another inode
same ./user
warm_up ./user && is_warm ./user
touch -d '2001-02-03' libv.so # other times only
same ./user
warm_up ./user && is_warm ./user
lib new.so 44 && touch -r libv.so new.so && cat new.so >libv.so && touch -d '2001-02-03' libv.so # the same size and mtime
same ./user
for i in 1 2 3 4 5 6; do # one right after the other
    lib new.so 5$i
    cat new.so >libv.so
    same ./user
    lib new.so 6$i
    cat new.so >libv.so && run ./user >/dev/null && lib new.so 7$i && cat new.so >libv.so
    same ./user
done
# quick changes: the file's times do not tell them apart
lib a.so 81 && lib b.so 82
for i in $(seq 30); do
    cat a.so >libv.so; [ "$(run ./user)" = 81 ] || wrong "quick change: an old value"
    cat b.so >libv.so; [ "$(run ./user)" = 82 ] || wrong "quick change: an old value"
done

# on a tmpfs, where programs may lie there (in containers they often may not)
shm=$(mktemp -d /dev/shm/reprise-XXXXXX 2>/dev/null) && lib "$shm/libv.so" 91 && cp user "$shm/user" &&
    LD_LIBRARY_PATH=$shm "$shm/user" >/dev/null 2>&1 && {
    LD_LIBRARY_PATH=$shm
    export LD_LIBRARY_PATH
    warm_up "$shm/user"
    same "$shm/user"
    lib "$shm/libv.so" 92
    same "$shm/user"
    unset LD_LIBRARY_PATH
}
rm -rf "$shm"

# Text that the program patches before it ever ran is not stored as the file's.
cat >patch.c <<'C'
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int main(int argc, char **argv) {
    void *h = dlopen("./libv.so", RTLD_NOW);
    int (*f)(int) = (int (*)(int))dlsym(h, "f7"), (*v)(void) = (int (*)(void))dlsym(h, "value");
    if (argc > 2) printf("%d ", v());
    if (argc > 1) {
        char *page = (char *)((uintptr_t)f & ~4095ul);
        static const unsigned char code[] = {0xb8, 0x10, 0x27, 0, 0, 0xc3}; /* mov $10000, %eax; ret */
        mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
        memcpy((void *)f, code, sizeof code);
        mprotect(page, 8192, PROT_READ | PROT_EXEC);
    }
    printf("%d %d\n", v(), f(7));
    return 0;
}
C
gcc -o patch patch.c -ldl
for i in 1 2 3; do
    same ./patch
    same ./patch first
    same ./patch first and later
    same ./patch
done

# One file mapped twice, and a library that changes between dlclose and dlopen.
cat >twice.c <<'C'
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
int main(void) {
    int fd = open("code.bin", O_RDONLY), sum = 0;
    int (*a)(void) = (int (*)(void))mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    int (*b)(void) = (int (*)(void))mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    int (*c)(void) = (int (*)(void))mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);
    for (int i = 0; i < 100; i++) sum += a() + b() * 10 + c() * 100;
    munmap((void *)a, 4096);
    for (int i = 0; i < 100; i++) sum += b() + c();
    printf("%d\n", sum);
    for (int i = 0; i < 6; i++) {
        if (system(i & 1 ? "cat a.so >x.so" : i == 4 ? "cp b.so n.so; mv n.so x.so" : "cat b.so >x.so")) return 1;
        void *h = dlopen("./x.so", RTLD_NOW);
        printf("%d ", ((int (*)(void))dlsym(h, "value"))());
        dlclose(h);
    }
    puts("");
    return 0;
}
C
gcc -o twice twice.c -ldl
printf '\270\3\0\0\0\303' >code.bin && truncate -s 4096 code.bin && printf '\270\5\0\0\0\303' >>code.bin && truncate -s 8192 code.bin
for i in 1 2 3; do same ./twice; done
finish
