// Hostile files for the loader: nothing may crash, leak a descriptor, or be mapped where the loader has no claim
// (fake_aspace.h sees to that), and loader_check() must foretell what loader_load() refuses.
//   coverage-guided:  clang -fsanitize=fuzzer,address -fPIE -pie -D_GNU_SOURCE -Isrc tests/fuzz/loader_fuzz.c
//                     src/sphere/{loader,script,stack}.c src/inproc/fmt.c
//   smoke test:       loader_fuzz SECONDS [SEED]
// link: src/sphere/loader.c src/sphere/script.c src/sphere/stack.c src/inproc/fmt.c
// cflags: -DSTANDALONE
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../unit/fake_aspace.h"
#include "sphere/loader.h"

#define SIZE_MAX_INPUT 65536

static char folder[] = "/tmp/reprise-fuzz-XXXXXX";
static uint64_t auxv[128];

static void set_up(void) {
    int fd = open("/proc/self/auxv", O_RDONLY);
    FAKE_CHECK(read(fd, auxv, sizeof auxv - 16) > 0);
    close(fd);
    FAKE_CHECK(mkdtemp(folder) && chdir(folder) == 0);
}

static void clean_up(void) {
    unlink("self");
    if (chdir("/") || rmdir(folder)) return;
}

/* The input under the name "self", so that it can also be its own interpreter. Nobody may have it open for writing. */
static int make_file(const uint8_t *bytes, size_t n) {
    int fd = open("self", O_WRONLY | O_CREAT | O_TRUNC, 0700);
    FAKE_CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
    return open("self", O_RDONLY | O_CLOEXEC);
}

static void check_result(const struct load_result *r, char **argv) {
    const uint64_t *sp = (const uint64_t *)r->sp;
    FAKE_CHECK(r->sp % 16 == 0 && r->entry < 0x7ffffffff000ull && r->stack_start == r->sp);
    FAKE_CHECK(sp[0] >= 2 && sp[1 + sp[0]] == 0);
    FAKE_CHECK(strcmp((const char *)sp[sp[0]], argv[1]) == 0); /* the last argument stays the last */
    FAKE_CHECK(r->auxv_end - r->auxv_start >= 16 * 10 && ((uint64_t *)r->auxv_end)[-2] == AT_NULL);
    FAKE_CHECK(strcmp(r->comm, "self") == 0 && r->exe_path[0] == '/' && r->why[0] == '\0');
    FAKE_CHECK(fake_break == r->brk_start && fake_stack);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static struct load_result r;
    if (!auxv[0]) set_up();
    int fd = make_file(bytes, n);
    char why[40];
    long foretold = loader_check(fd, why, sizeof why);
    FAKE_CHECK(foretold <= 0 && foretold > -4096 && fake_count == 0);
    FAKE_CHECK((foretold == 0) == (why[0] == '\0'));

    char *argv[] = {"first", "last", NULL}, *envp[] = {"A=1", NULL};
    struct exec_image image = {.fd = fd, .path = "./self", .argv = argv, .envp = envp};
    long loaded = loader_load(&image, auxv, 0, &r);
    FAKE_CHECK(foretold == 0 || foretold == -EACCES || foretold == -ETXTBSY || loaded == foretold);
    FAKE_CHECK(loaded <= 0 && loaded > -4096);
    if (loaded == 0) {
        check_result(&r, argv);
        if (r.exe_fd != fd) close(r.exe_fd);
    } else {
        FAKE_CHECK(r.exe_fd == -1 && r.why[0]);
    }
    fake_reset();
    close(fd);
    int next = open("/dev/null", O_RDONLY);
    close(next);
    FAKE_CHECK(next == fd); /* nothing stayed open */
    return 0;
}

/* --- mutations that know where the fields are --- */

static uint64_t pick(uint64_t *state) { /* xorshift */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t nasty(uint64_t *state) {
    static const uint64_t values[] = {
        0,
        1,
        2,
        3,
        4,
        7,
        55,
        56,
        57,
        64,
        0xfff,
        0x1000,
        0x1001,
        0x2000,
        0xffff,
        0x10000,
        0x400000,
        0x20000000,
        0x7fffffff,
        0x80000000,
        0xffffffff,
        1ull << 32,
        1ull << 40,
        0x7fffffffe000,
        0x7ffffffff000,
        0x7fffffffffff,
        1ull << 47,
        1ull << 62,
        INT64_MAX - 0xfff,
        INT64_MAX,
        1ull << 63,
        UINT64_MAX - 0xfff,
        UINT64_MAX - 1,
        UINT64_MAX,
    };
    uint64_t v = values[pick(state) % ARRAY_LEN(values)];
    return pick(state) % 4 ? v : v + (pick(state) % 64 - 32) * (pick(state) % 2 ? 1 : PAGE_SIZE);
}

static void put(uint8_t *bytes, size_t n, size_t at, uint64_t value, size_t width) {
    if (at < n) memcpy(bytes + at, &value, MIN(width, n - at));
}

static size_t mutate(uint8_t *bytes, size_t n, size_t cap, uint64_t *state) {
    static const uint8_t head_fields[][2] = {{16, 2}, {18, 2}, {24, 8}, {32, 8}, {54, 2}, {56, 2}};
    static const uint32_t types[] = {PT_NULL, PT_LOAD, PT_LOAD, PT_LOAD, PT_INTERP, PT_GNU_STACK, PT_PHDR};
    uint64_t phdr = 64 + 56 * (pick(state) % 14);
    switch (pick(state) % 12) {
    case 0: put(bytes, n, pick(state) % (n + 1), pick(state), 1); break;
    case 1: put(bytes, n, pick(state) % (n + 1), nasty(state), 8); break;
    case 2: {
        size_t f = pick(state) % ARRAY_LEN(head_fields);
        put(bytes, n, head_fields[f][0], nasty(state), head_fields[f][1]);
        break;
    }
    case 3: put(bytes, n, phdr, types[pick(state) % ARRAY_LEN(types)], 4); break;
    case 4: put(bytes, n, phdr + 4, pick(state) % 8, 4); break;
    case 5: n = pick(state) % (n + 1); break;
    case 6: { /* longer by its own bytes */
        size_t more = pick(state) % 4096;
        more = MIN(more, MIN(n, cap - n));
        memcpy(bytes + n, bytes, more);
        n += more;
        break;
    }
    case 7: put(bytes, n, 16, 2 + pick(state) % 2, 2); break; /* ET_EXEC or ET_DYN */
    default: put(bytes, n, phdr + 8 * (1 + pick(state) % 6), nasty(state), 8);
    }
    return n;
}

#ifndef STANDALONE

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n, size_t cap);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t cap, unsigned seed) {
    uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
    return n && n <= cap && seed % 4 ? mutate(bytes, n, cap, &state) : LLVMFuzzerMutate(bytes, n, cap);
}

#else

static uint8_t input[SIZE_MAX_INPUT];

static size_t seed_file(const char *path) {
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, input, sizeof input / 2);
    close(fd);
    return n < 0 ? 0 : (size_t)n;
}

static size_t seed_text(const char *text) {
    memcpy(input, text, strlen(text));
    return strlen(text);
}

/* Two segments at fixed addresses with bss; with an interpreter, the file itself. */
static size_t seed_tiny(uint16_t type, bool interp) {
    static const char self[] = "./self";
    Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', 2, 1, 1},
                       .e_type = type,
                       .e_machine = EM_X86_64,
                       .e_entry = 0x20000100,
                       .e_phoff = 64,
                       .e_phentsize = 56,
                       .e_phnum = 4};
    Elf64_Phdr ph[4] = {
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_X,
         .p_vaddr = 0x20000000,
         .p_filesz = 0x1000,
         .p_memsz = 0x1000,
         .p_align = 0x1000},
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_W,
         .p_offset = 0x1000,
         .p_vaddr = 0x20001000,
         .p_filesz = 0x20,
         .p_memsz = 0x3000,
         .p_align = 0x1000},
        {.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W},
        {.p_type = interp ? PT_INTERP : PT_NULL, .p_offset = 0x800, .p_filesz = sizeof self},
    };
    memset(input, 'x', 0x2000);
    memcpy(input, &head, sizeof head);
    memcpy(input + 64, ph, sizeof ph);
    memcpy(input + 0x800, self, sizeof self);
    return 0x2000;
}

static size_t seed(uint64_t which) {
    switch (which % 9) {
    case 0: return seed_file("/bin/true");
    case 1: return seed_tiny(ET_EXEC, false);
    case 2: return seed_tiny(ET_DYN, false);
    case 3: return seed_tiny(ET_EXEC, true);
    case 4: return seed_tiny(ET_DYN, true);
    case 5: return seed_text("#!/bin/true -x  y z\t\nrest of it");
    case 6: return seed_text("#!./self\n");
    case 7: return seed_text("#! \t /bin/true");
    default: return seed_file("/lib64/ld-linux-x86-64.so.2");
    }
}

static void say_where(int signal_number) {
    static const char text[] = "the input that did it: ";
    if (write(2, text, sizeof text - 1) + write(2, folder, strlen(folder)) + write(2, "/self\n", 6) < 0) _exit(2);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL),
             state = first * 0x9e3779b97f4a7c15ull + 1;
    signal(SIGSEGV, say_where);
    signal(SIGBUS, say_where);
    signal(SIGABRT, say_where);
    fprintf(stderr, "seed %lu\n", first);
    unsigned long runs = 0;
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        size_t n = seed(pick(&state));
        for (uint64_t m = pick(&state) % 5; m > 0; m--) n = mutate(input, n, sizeof input, &state);
        LLVMFuzzerTestOneInput(input, n);
        runs++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 < seconds);
    printf("%lu inputs\n", runs);
    clean_up();
    return 0;
}

#endif
