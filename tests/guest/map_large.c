/* Maps sparse files of so many MB as a linker does, and says of each whether it lies in the low 2 GB. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        size_t len = strtoul(argv[i], NULL, 10) << 20;
        char name[] = "large-XXXXXX";
        int fd = mkstemp(name);
        if (fd < 0 || ftruncate(fd, (off_t)len) != 0) return 1;
        void *at = mmap(NULL, len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
        if (at == MAP_FAILED) return 1;
        printf("%s MB %s\n", argv[i], (uintptr_t)at < 0x80000000u ? "low" : "high");
        unlink(name);
        close(fd);
    }
    return 0;
}
