/* /proc/self/maps lists what the program can account for and nothing else: its files, heap, stack, its own mappings.
 * After execution code in the vDSO and a JIT page the list is the same, and protections are those that were asked for. */
#include "guest.h"

static char text[1 << 20], exe[4096];
static int foreign, stacks, heaps, exes, libs;

static void classify(const char *line, char *own, size_t own_size) {
    uintptr_t lo, hi;
    char prot[8], name[4096] = "";
    unsigned long off, ino;
    char dev[16];
    if (sscanf(line, "%lx-%lx %4s %lx %15s %lu %4095[^\n]", &lo, &hi, prot, &off, dev, &ino, name) < 6) {
        foreign++;
        return;
    }
    uintptr_t here = (uintptr_t)&here, code = (uintptr_t)classify;
    if (!strcmp(name, "[stack]")) {
        stacks++;
        CHECK(here >= lo && here < hi && !strcmp(prot, "rw-p"));
    } else if (!strcmp(name, "[heap]")) {
        heaps++;
        CHECK(hi == (uintptr_t)sbrk(0) && !strcmp(prot, "rw-p"));
    } else if (!strcmp(name, exe)) {
        exes++;
        if (code >= lo && code < hi) CHECK(!strcmp(prot, "r-xp"));
    } else if (has_text(name, "/libc") || has_text(name, "/ld-linux")) {
        libs++;
    } else if (!strcmp(name, "[vdso]") || !strcmp(name, "[vvar]") || !strcmp(name, "[vsyscall]") ||
               !strcmp(name, "[vvar_vclock]")) {
    } else if (!name[0] && lo == (uintptr_t)own && hi == (uintptr_t)own + own_size) {
        CHECK(!strcmp(prot, "rwxp"));
    } else if (!name[0] && (uintptr_t)text < hi && (uintptr_t)text + sizeof text > lo) { /* our bss */
    } else if (!name[0] && ino == 0 && hi - lo <= 65536) { /* libc's and ld.so's own small areas: bss, tls */
    } else {
        foreign++;
        printf("FAIL: a mapping of %lu pages, %s, named '%s'\n", (hi - lo) / 4096, prot, name);
    }
}
static int count_lines(void) {
    int n = 0;
    slurp("/proc/self/maps", text, sizeof text);
    for (char *p = text; *p; p++) n += *p == '\n';
    return n;
}

int main(void) {
    CHECK(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    void *volatile block = malloc(1000);
    free(block);
    size_t own_size = 5 << 20;
    char *own = mmap(NULL, own_size + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(own, 4096), munmap(own + 4096 + own_size, 4096); /* neighbours would be merged */
    own += 4096;
    mprotect(own, own_size, PROT_READ | PROT_WRITE | PROT_EXEC);
    own[0] = (char)0xc3;
    ((void (*)(void))own)();
    slurp("/proc/self/maps", text, sizeof text);
    for (char *save, *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) classify(l, own, own_size);
    printf("stack %d, heap %d, exe at least 4: %d, libraries %d, foreign %d\n", stacks, heaps, exes >= 4, libs > 8,
           foreign);

    int before = count_lines();
    char *extra = mmap(NULL, 4096 * 3, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(extra + 4096, 4096, PROT_NONE);
    CHECK(count_lines() >= before + 2);
    munmap(extra, 4096 * 3);
    CHECK(count_lines() == before);

    char line[256], want[64];
    snprintf(want, sizeof want, "%lx-%lx rwxp", (uintptr_t)own, (uintptr_t)own + own_size);
    FILE *f = fopen("/proc/self/maps", "r"); /* read in small pieces */
    setvbuf(f, NULL, _IOFBF, 100);
    bool seen = false;
    while (fgets(line, sizeof line, f)) seen |= !strncmp(line, want, strlen(want));
    fclose(f);
    CHECK(seen);
    snprintf(line, sizeof line, "/proc/%d/maps", getpid());
    CHECK(slurp(line, text, sizeof text) > 0 && has_text(text, want));
    CHECK(slurp("/proc/self/smaps", text, sizeof text) > 0 && has_text(text, want));
    CHECK(slurp("/proc/thread-self/maps", text, sizeof text) > 0 && has_text(text, want));
    return finish();
}
