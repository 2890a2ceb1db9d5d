// libs: -ldl
/* dlopen and dlclose of copies of one library with different code, loaded at the same addresses time and again; files rewritten in place. */
#include "guest.h"
#include <dlfcn.h>
#include <libgen.h>

static int add_one(int x) { return x + 1; }

int main(void) {
    char path[4096] = "";
    CHECK(readlink("/proc/self/exe", path, sizeof path - 16) > 0);
    strcat(path, "_lib");
    static char lib[1 << 17];
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, lib, sizeof lib);
    if (n <= 0) return puts("FAIL: no library"), 1;
    char *at = memmem(lib, n, "\x44\x33\x22\x11", 4);
    CHECK(at != NULL);
    long sum = 0;
    for (int i = 0; i < 120; i++) { /* a new file, or the same one rewritten in place: same name, size and inode */
        char copy[32];
        snprintf(copy, sizeof copy, "./copy%d.so", i < 60 ? i % 7 : 9);
        memcpy(at, &i, 4);
        if (i < 60) unlink(copy);
        int out = open(copy, O_WRONLY | O_CREAT, 0755);
        CHECK(write(out, lib, n) == n);
        close(out);
        void *h = dlopen(copy, RTLD_NOW);
        if (!h) return printf("FAIL: %s\n", dlerror()), 1;
        int (*answer)(void) = (int (*)(void))dlsym(h, "answer");
        int (*twice)(int (*)(int), int) = (int (*)(int (*)(int), int))dlsym(h, "twice");
        sum += answer() + twice(add_one, i);
        CHECK(answer() == i);
        dlclose(h);
        if (i < 60) unlink(copy);
    }
    unlink("./copy9.so");
    printf("sum %ld\n", sum);
    CHECK(dlopen("./no-such-library.so", RTLD_NOW) == NULL && dlerror() != NULL);
    void *m = dlopen("libm.so.6", RTLD_LAZY);
    double (*cosine)(double) = (double (*)(double))dlsym(m, "cos");
    printf("cos(1) = %.6f\n", cosine(1));
    dlclose(m);
    return finish();
}
