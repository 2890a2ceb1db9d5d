// The loader against the kernel: the same files are executed natively and loaded (and run) by Reprise's loader.
// libc has the functions of src/inproc/str.c, so that file is not linked.
// link: src/sphere/loader.c src/sphere/script.c src/sphere/stack.c src/inproc/fmt.c
// clang-format off
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_aspace.h"
#include "sphere/loader.h"

static char folder[] = "/tmp/reprise-loader-XXXXXX";
static char *no_strings[] = {NULL};
static uint64_t host_auxv[128];
static struct load_result result;

static int enter_folder(void **state) {
    (void)state;
    int fd = open("/proc/self/auxv", O_RDONLY);
    ssize_t n = read(fd, host_auxv, sizeof host_auxv - 16);
    close(fd);
    return n <= 0 || !mkdtemp(folder) || chdir(folder);
}

static int leave_folder(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") || system(command);
}

static void put_file(const char *name, const void *bytes, size_t n) {
    unlink(name);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
}

static void put_text(const char *name, const char *text) { put_file(name, text, strlen(text)); }

static long check(const char *path, char *why, size_t cap) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    long ret = loader_check(fd, why, cap);
    close(fd);
    return ret;
}

/* Leaves result.exe_fd open if it is another file's; tests do not care. */
static long load_env(const char *path, char **argv, char **envp) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    struct exec_image image = {.fd = fd, .path = path, .argv = argv, .envp = envp};
    long ret = loader_load(&image, host_auxv, 0, &result);
    if (ret == 0 && result.exe_fd != fd) close(result.exe_fd);
    close(fd);
    return ret;
}

static long load(const char *path, char **argv) { return load_env(path, argv, no_strings); }

/* --- running a file, natively and through the loader --- */

struct outcome {
    int error;  /* errno of execve; 0: it ran */
    int status; /* of wait: only whether a signal ended it, and the exit code, count */
    char output[8192];
};

static __attribute__((noreturn)) void jump(gaddr entry, gaddr sp) {
    __asm__ volatile("mov %0, %%rsp\n xor %%edx, %%edx\n xor %%ebp, %%ebp\n jmp *%1"
                     :
                     : "a"(sp), "c"(entry)
                     : "memory");
    __builtin_unreachable();
}

static void run_loaded(const char *path, char **argv, char **envp, int error_fd) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int error = fd < 0 ? errno : (int)-loader_check(fd, NULL, 0);
    if (error) {
        if (write(error_fd, &error, sizeof error)) _exit(1);
        _exit(1);
    }
    struct exec_image image = {.fd = fd, .path = path, .argv = argv, .envp = envp};
    if (loader_load(&image, host_auxv, 0, &result) < 0) kill(getpid(), SIGSEGV); /* as the kernel does */
    close(error_fd);
    jump(result.entry, result.sp);
}

static void run_native(const char *path, char **argv, char **envp, int error_fd) {
    execve(path, argv, envp);
    if (write(error_fd, &errno, sizeof errno)) _exit(1);
    _exit(1);
}

static struct outcome run(const char *path, char **argv, char **envp,
                          void (*how)(const char *, char **, char **, int)) {
    int errors[2], output[2];
    assert_int_equal(pipe2(errors, O_CLOEXEC), 0);
    assert_int_equal(pipe(output), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        for (int s = 1; s < 32; s++) signal(s, SIG_DFL);
        alarm(20);
        dup2(output[1], 1);
        close(output[0]);
        close(output[1]);
        how(path, argv, envp, errors[1]);
        _exit(1);
    }
    close(errors[1]);
    close(output[1]);
    struct outcome o = {0};
    if (read(errors[0], &o.error, sizeof o.error) != sizeof o.error) o.error = 0;
    size_t n = 0;
    ssize_t got;
    while ((got = read(output[0], o.output + n, sizeof o.output - 1 - n)) > 0) n += (size_t)got;
    close(errors[0]);
    close(output[0]);
    assert_int_equal(waitpid(pid, &o.status, 0), pid);
    return o;
}

/* Both ways must end alike. Returns how the native run ended. */
static struct outcome same(const char *name, const char *path, char **argv, char **envp) {
    struct outcome native = run(path, argv, envp, run_native), loaded = run(path, argv, envp, run_loaded);
    if (native.error != loaded.error) fail_msg("%s: execve says %d, the loader %d", name, native.error, loaded.error);
    if (WIFEXITED(native.status) != WIFEXITED(loaded.status) ||
        WEXITSTATUS(native.status) != WEXITSTATUS(loaded.status))
        fail_msg("%s: status %x natively, %x loaded", name, (unsigned)native.status, (unsigned)loaded.status);
    if (strcmp(native.output, loaded.output))
        fail_msg("%s: prints natively\n%s\nand loaded\n%s", name, native.output, loaded.output);
    return native;
}

/* --- real programs --- */

static void runs_real_programs(void **state) {
    (void)state;
    char *true_[] = {"true", NULL}, *echo[] = {"echo", "one", "", "two words", NULL};
    char *python[] = {"python3", "-c", "import sys, os; print(sys.argv, os.environ['A'], sum(range(1000)))", "x", NULL};
    char *env[] = {"A=b", "EMPTY=", NULL};
    assert_int_equal(same("true", "/bin/true", true_, env).status, 0);
    assert_string_equal(same("echo", "/bin/echo", echo, env).output, "one  two words\n");
    if (access("/usr/bin/python3.11", X_OK) == 0) same("python", "/usr/bin/python3.11", python, env);
    same("ld.so", "/lib64/ld-linux-x86-64.so.2", (char *[]){"ld.so", "/bin/echo", "hi", NULL}, env);
    if (access("/sbin/ldconfig", X_OK) == 0) /* static-pie */
        same("ldconfig", "/sbin/ldconfig", (char *[]){"ldconfig", "--version", NULL}, env);
    same("env", "/usr/bin/env", (char *[]){"env", NULL}, env);
}

static void empty_argv_gets_a_name(void **state) {
    (void)state;
    assert_int_equal(load("/bin/true", no_strings), 0);
    uint64_t *sp = (uint64_t *)result.sp;
    assert_int_equal(sp[0], 1);
    assert_string_equal((char *)sp[1], "");
    fake_reset();
}

static void many_long_arguments(void **state) {
    (void)state;
    enum { COUNT = 40 };
    char *argv[COUNT + 2] = {"true"}, *big = malloc(131072);
    memset(big, 'x', 131071);
    big[131071] = '\0';
    for (int i = 1; i <= COUNT; i++) argv[i] = big;
    assert_int_equal(load("/bin/true", argv), 0);
    uint64_t *sp = (uint64_t *)result.sp;
    assert_int_equal(sp[0], COUNT + 1);
    for (int i = 0; i <= COUNT; i++) assert_string_equal((char *)sp[1 + i], argv[i]);
    assert_int_equal(result.arg_end - result.arg_start, 5 + COUNT * 131072ul);
    free(big);
    fake_reset();
}

/* --- stack and auxv --- */

static uint64_t aux(uint64_t type) {
    for (uint64_t *a = (uint64_t *)result.auxv_start; a[0]; a += 2)
        if (a[0] == type) return a[1];
    fail_msg("no auxv entry %lu", type);
    return 0;
}

static void stack_is_laid_out_like_the_kernels(void **state) {
    (void)state;
    char *argv[] = {"a0", "a1", NULL}, *envp[] = {"E=1", "FF=22", NULL};
    assert_int_equal(load_env("/bin/true", argv, envp), 0);
    uint64_t *sp = (uint64_t *)result.sp;
    assert_int_equal(result.sp % 16, 0);
    assert_int_equal(sp[0], 2);
    assert_int_equal(sp[1], result.arg_start);
    assert_int_equal(sp[2], result.arg_start + 3);
    assert_int_equal(sp[3], 0);
    assert_int_equal(sp[4], result.env_start);
    assert_int_equal(sp[5], result.env_start + 4);
    assert_int_equal(sp[6], 0);
    assert_int_equal(result.auxv_start, (gaddr)(sp + 7));
    assert_memory_equal((char *)result.arg_start, "a0\0a1\0E=1\0FF=22\0/bin/true\0\0\0\0\0\0\0\0", 34);
    assert_int_equal(result.arg_end, result.env_start);
    assert_int_equal(PAGE_UP(result.env_end), fake_stack + 1); /* the path and 8 zero bytes end the stack */
    assert_int_equal(aux(AT_EXECFN), result.env_end);
    assert_string_equal((char *)aux(AT_PLATFORM), "x86_64");
    assert_int_equal(aux(AT_RANDOM) + 16, aux(AT_PLATFORM));
    assert_int_equal((aux(AT_PLATFORM) + 7) % 16, 0);
    assert_memory_equal((void *)aux(AT_RANDOM), (void *)getauxval(AT_RANDOM), 16);
    assert_string_equal(result.comm, "true");
    char real[4096] = "";
    assert_non_null(realpath("/bin/true", real));
    assert_string_equal(result.exe_path, real);
    assert_int_equal(fake_break, result.brk_start);
    assert_true(result.code_start < result.code_end && result.data_end <= result.brk_start);
    fake_reset();
}

/* Writes "rwxp" of the mapping that covers addr. */
static void protection(gaddr addr, char *out) {
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long start, end;
    strcpy(out, "none");
    while (fscanf(maps, "%lx-%lx %4s%*[^\n]", &start, &end, out) == 3)
        if (start <= addr && addr < end) break;
    fclose(maps);
}

static void auxv_has_the_kernels_order(void **state) {
    (void)state;
    int fd = open("/bin/true", O_RDONLY);
    struct exec_image image = {.fd = fd, .path = "/bin/true", .argv = no_strings, .envp = no_strings};
    assert_int_equal(loader_load(&image, host_auxv, 0x1000, &result), 0);
    close(fd);
    uint64_t *a = (uint64_t *)result.auxv_start;
    for (uint64_t *k = host_auxv; k[0]; k += 2) {
        if (k[0] == 27 || k[0] == 28) continue; /* AT_RSEQ_* */
        assert_int_equal(a[0], k[0]);
        a += 2;
    }
    assert_int_equal(a[0], AT_NULL);
    assert_int_equal((gaddr)(a + 2), result.auxv_end);
    assert_int_equal(aux(AT_SYSINFO_EHDR), 0x1000);
    assert_int_equal(aux(AT_UID), getuid());
    assert_memory_equal((char *)aux(AT_PHDR) - 64, ELFMAG, SELFMAG);
    assert_memory_equal((char *)aux(AT_BASE), ELFMAG, SELFMAG);
    fake_reset();
    assert_int_equal(load("/bin/true", no_strings), 0);
    assert_int_not_equal(*(uint64_t *)result.auxv_start, AT_SYSINFO_EHDR);
    fake_reset();
}

/* --- hostile headers --- */

/* A small program that exits with 7 if its bss is zero and its data is there. Page 0: headers and code; page 1: data. */
#define BASE 0x20000000ull
#define DATA (BASE + 0x1000)
#define DATA_SIZE 0x20
#define BSS_SIZE 0x3000

struct tiny {
    Elf64_Ehdr head;
    Elf64_Phdr code, data, stack, spare;
    unsigned char text[0x1000 - 64 - 4 * 56];
    char bytes[0x1000];
};
_Static_assert(sizeof(struct tiny) == 0x2000, "two pages");

static const unsigned char text[] = {
    0x48, 0x8d, 0x1d, 0xf9,      0x0f - 1, 0, 0,    /* lea DATA(%rip),%rbx; patched below */
    0xbf, 9,    0,    0,         0,                 /* mov $9,%edi */
    0x80, 0x3b, 'd',                                /* cmpb $'d',(%rbx) */
    0x75, 33,                                       /* jne exit */
    0xff, 0xcf,                                     /* dec %edi */
    0x48, 0x83, 0x7b, DATA_SIZE, 0,                 /* cmpq $0,0x20(%rbx) */
    0x75, 24,                                       /* jne exit */
    0x48, 0x83, 0xbb, 0xf8,      0x0f,     0, 0, 0, /* cmpq $0,0xff8(%rbx) */
    0x75, 14,                                       /* jne exit */
    0x48, 0x83, 0xbb, 0x00,      0x20,     0, 0, 0, /* cmpq $0,0x2000(%rbx) */
    0x75, 4,                                        /* jne exit */
    0xff, 0xcf, 0x90, 0x90,                         /* dec %edi */
    0xb8, 60,   0,    0,         0,                 /* exit: mov $60,%eax */
    0x0f, 0x05,                                     /* syscall */
};

static void make_tiny(struct tiny *t) {
    memset(t, 0, sizeof *t);
    memset(t->bytes, 'j', sizeof t->bytes); /* junk that must not show up in bss */
    memset(t->bytes, 'd', DATA_SIZE);
    memcpy(t->text, text, sizeof text);
    int32_t distance = (int32_t)(0x1000 - offsetof(struct tiny, text) - 7);
    memcpy(t->text + 3, &distance, 4);
    t->head = (Elf64_Ehdr){
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = EM_X86_64,
        .e_version = 1,
        .e_entry = BASE + offsetof(struct tiny, text),
        .e_phoff = offsetof(struct tiny, code),
        .e_ehsize = 64,
        .e_phentsize = 56,
        .e_phnum = 4,
    };
    t->code = (Elf64_Phdr){.p_type = PT_LOAD,
                           .p_flags = PF_R | PF_X,
                           .p_vaddr = BASE,
                           .p_filesz = 0x1000,
                           .p_memsz = 0x1000,
                           .p_align = 0x1000};
    t->data = (Elf64_Phdr){.p_type = PT_LOAD,
                           .p_flags = PF_R | PF_W,
                           .p_offset = 0x1000,
                           .p_vaddr = DATA,
                           .p_filesz = DATA_SIZE,
                           .p_memsz = BSS_SIZE,
                           .p_align = 0x1000};
    t->stack = (Elf64_Phdr){.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W};
}

#define HEAD(field) offsetof(struct tiny, head.field), sizeof((struct tiny *)0)->head.field
#define SEG(seg, field) offsetof(struct tiny, seg.field), sizeof((struct tiny *)0)->seg.field

struct patch {
    size_t offset, size;
    uint64_t value;
};

struct hostile {
    const char *name;
    int check, load; /* errno expected of loader_check, and, if that is 0, of loader_load */
    struct patch patch[6];
    size_t keep;     /* cut the file to this size */
    bool privileged; /* the kernel's own answer depends on who asks: do not compare */
};

#define DYN                                                                                          \
    {HEAD(e_type), ET_DYN}, {HEAD(e_entry), offsetof(struct tiny, text)}, {SEG(code, p_vaddr), 0}, { \
        SEG(data, p_vaddr), 0x1000                                                                   \
    }

static const struct hostile hostile[] = {
    {"as it is", 0, 0, {{0}}, 0},
    {"position independent", 0, 0, {DYN}, 0},
    {"magic", ENOEXEC, 0, {{HEAD(e_ident), 0}}, 0},
    {"object file", ENOEXEC, 0, {{HEAD(e_type), ET_REL}}, 0},
    {"core file", ENOEXEC, 0, {{HEAD(e_type), ET_CORE}}, 0},
    {"type 0", ENOEXEC, 0, {{HEAD(e_type), 0}}, 0},
    {"aarch64", ENOEXEC, 0, {{HEAD(e_machine), EM_AARCH64}}, 0},
    {"unknown machine", ENOEXEC, 0, {{HEAD(e_machine), 0xffff}}, 0},
    {"ident is ignored", 0, 0, {{4, 1, 0}, {5, 1, 2}, {6, 1, 77}}, 0},
    {"phentsize", ENOEXEC, 0, {{HEAD(e_phentsize), 55}}, 0},
    {"phentsize 0", ENOEXEC, 0, {{HEAD(e_phentsize), 0}}, 0},
    {"phnum 0", ENOEXEC, 0, {{HEAD(e_phnum), 0}}, 0},
    {"phnum too large", ENOEXEC, 0, {{HEAD(e_phnum), 1171}}, 0},
    {"phnum 65535", ENOEXEC, 0, {{HEAD(e_phnum), 65535}}, 0},
    {"phoff beyond the end", ENOEXEC, 0, {{HEAD(e_phoff), 0x2000}}, 0},
    {"phoff huge", ENOEXEC, 0, {{HEAD(e_phoff), INT64_MAX}}, 0},
    {"phoff negative", ENOEXEC, 0, {{HEAD(e_phoff), UINT64_MAX}}, 0},
    {"only the magic", ENOEXEC, 0, {{0}}, 4},
    {"half a header", ENOEXEC, 0, {{0}}, 40},
    {"header only", ENOEXEC, 0, {{0}}, 64},
    {"headers cut", ENOEXEC, 0, {{0}}, 64 + 4 * 56 - 1},
    {"no PT_LOAD", 0, 0, {{SEG(code, p_type), PT_NULL}, {SEG(data, p_type), PT_NULL}}, 0},
    {"no PT_LOAD, PIE", 0, 0, {DYN, {SEG(code, p_type), PT_NULL}, {SEG(data, p_type), PT_NULL}}, 0},
    {"filesz > memsz", 0, EINVAL, {{SEG(data, p_memsz), DATA_SIZE - 1}}, 0},
    {"filesz > memsz, PIE", 0, EINVAL, {DYN, {SEG(data, p_memsz), DATA_SIZE - 1}}, 0},
    {"address at the limit", 0, EINVAL, {{SEG(data, p_vaddr), 0x7ffffffff000}}, 0},
    {"address negative", 0, EINVAL, {{SEG(data, p_vaddr), 0xffffffffff600000}}, 0},
    {"address negative, PIE", 0, EINVAL, {{HEAD(e_type), ET_DYN}, {SEG(code, p_vaddr), 0xfffffffffffff000}}, 0},
    {"size wraps", 0, EINVAL, {{SEG(data, p_memsz), UINT64_MAX - 0xfff}}, 0},
    {"size wraps to small", 0, EINVAL, {{SEG(data, p_memsz), 0 - DATA + 0x10000}}, 0},
    {"size wraps, PIE", 0, EINVAL, {DYN, {SEG(data, p_memsz), UINT64_MAX}}, 0},
    {"size above the limit", 0, EINVAL, {{SEG(data, p_memsz), 0x7ffffffff000}}, 0},
    {"terabytes of bss", 0, ENOMEM, {{SEG(data, p_memsz), 0x7f0000000000}}, 0},
    {"terabytes of bss, PIE", 0, ENOMEM, {DYN, {SEG(data, p_memsz), 0x7f0000000000}}, 0},
    {"offset does not fit", 0, EINVAL, {{SEG(data, p_offset), 0x1001}}, 0},
    {"offset negative", 0, EOVERFLOW, {{SEG(data, p_offset), 0xfffffffffffff000}}, 0},
    {"offset huge", 0, EOVERFLOW, {{SEG(data, p_offset), 0x7ffffffffffff000}}, 0},
    {"data beyond the end", 0, EFAULT, {{0}}, 0x1000},
    {"read-only data beyond the end", 0, 0, {{SEG(data, p_flags), PF_R}, {SEG(data, p_memsz), DATA_SIZE}}, 0x1000},
    {"large alignment, PIE", 0, 0, {DYN, {SEG(code, p_align), 0x200000}}, 0},
    {"impossible alignment, PIE",
     0,
     ENOMEM,
     {DYN, {SEG(code, p_align), 1ull << 63}},
     0,
     true}, /* root may map page 0 */
    {"odd alignment, PIE", 0, 0, {DYN, {SEG(code, p_align), 0x3000}}, 0},
    {"alignment 0", 0, 0, {{SEG(code, p_align), 0}}, 0},
    {"overlap: data over code", 0, 0, {{SEG(data, p_vaddr), BASE}, {SEG(data, p_offset), 0}}, 0},
    {"bss over code", 0, 0, {{SEG(data, p_vaddr), BASE}, {SEG(data, p_filesz), 0}}, 0},
    {"read-only with bss", 0, 0, {{SEG(data, p_flags), PF_R}}, 0},
    {"empty segment", 0, 0, {{SEG(data, p_filesz), 0}, {SEG(data, p_memsz), 0}}, 0},
    {"entry outside", 0, EINVAL, {{HEAD(e_entry), 0xffff800000000000}}, 0},
    {"entry in nothing", 0, 0, {{HEAD(e_entry), 0x30000000}}, 0},
    {"executable stack", 0, 0, {{SEG(stack, p_flags), 7}}, 0},
    {"interp too short", ENOEXEC, 0, {{SEG(spare, p_type), PT_INTERP}, {SEG(spare, p_filesz), 1}}, 0},
    {"interp too long", ENOEXEC, 0, {{SEG(spare, p_type), PT_INTERP}, {SEG(spare, p_filesz), 4097}}, 0},
    {"interp beyond the end",
     EIO,
     0,
     {{SEG(spare, p_type), PT_INTERP}, {SEG(spare, p_filesz), 9}, {SEG(spare, p_offset), 0x1ff8}},
     0},
    {"interp offset negative",
     EINVAL,
     0,
     {{SEG(spare, p_type), PT_INTERP}, {SEG(spare, p_filesz), 9}, {SEG(spare, p_offset), UINT64_MAX - 99}},
     0},
    {"interp not terminated",
     ENOEXEC,
     0,
     {{SEG(spare, p_type), PT_INTERP}, {SEG(spare, p_filesz), 9}, {SEG(spare, p_offset), 0x1000}},
     0},
};

static void patch_tiny(struct tiny *t, const struct patch *p) {
    assert_true(p->offset + p->size <= sizeof *t);
    memcpy((char *)t + p->offset, &p->value, MIN(p->size, sizeof p->value));
}

static void hostile_headers(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        const struct hostile *h = &hostile[i];
        struct tiny t;
        make_tiny(&t);
        for (size_t k = 0; k < ARRAY_LEN(h->patch) && h->patch[k].size; k++) patch_tiny(&t, &h->patch[k]);
        put_file("tiny", &t, h->keep ? h->keep : sizeof t);

        char why[160];
        long ret = check("./tiny", why, sizeof why);
        if (ret != -h->check) fail_msg("%s: loader_check says %ld (%s), expected %d", h->name, ret, why, -h->check);
        if ((ret == 0) != (why[0] == '\0')) fail_msg("%s: why is \"%s\"", h->name, why);
        ret = load("./tiny", no_strings);
        int expected = h->check ? h->check : h->load;
        if (ret != -expected)
            fail_msg("%s: loader_load says %ld (%s), expected %d", h->name, ret, result.why, -expected);
        if ((ret == 0) != (result.why[0] == '\0')) fail_msg("%s: why is \"%s\"", h->name, result.why);
        fake_reset();
        if (h->privileged) continue;
        struct outcome native = same(h->name, "./tiny", (char *[]){"tiny", NULL}, no_strings);
        if (native.error != h->check) fail_msg("%s: execve says %d, expected %d", h->name, native.error, h->check);
    }
}

static void bss_is_zeroed(void **state) {
    (void)state;
    struct tiny t;
    make_tiny(&t);
    put_file("tiny", &t, sizeof t);
    assert_int_equal(WEXITSTATUS(same("tiny", "./tiny", no_strings, no_strings).status), 7);
    assert_int_equal(load("./tiny", no_strings), 0);
    char *data = (char *)DATA;
    assert_memory_equal(data, t.bytes, DATA_SIZE);
    for (size_t i = DATA_SIZE; i < BSS_SIZE; i++) assert_int_equal(data[i], 0);
    assert_int_equal(result.brk_start, DATA + BSS_SIZE);
    assert_int_equal(aux(AT_PHDR), BASE + 64);
    assert_int_equal(aux(AT_PHNUM), 4);
    assert_int_equal(aux(AT_BASE), 0);
    fake_reset();
}

static void stack_protection(void **state) {
    (void)state;
    struct tiny t;
    char prot[8];
    struct rlimit limit = {0};
    getrlimit(RLIMIT_STACK, &limit);
    if (limit.rlim_cur > (8 << 20) && limit.rlim_cur < (10 << 20)) skip();
    for (unsigned flags = PF_R | PF_W; flags <= (PF_R | PF_W | PF_X); flags++) {
        make_tiny(&t);
        t.stack.p_flags = flags;
        put_file("tiny", &t, sizeof t);
        assert_int_equal(load("./tiny", no_strings), 0);
        protection(result.sp, prot);
        assert_string_equal(prot, flags & PF_X ? "rwxp" : "rw-p");
        protection(result.sp - (8 << 20) - (1 << 19), prot);
        assert_string_equal(prot, limit.rlim_cur <= (8 << 20) ? "---p" : flags & PF_X ? "rwxp" : "rw-p"); /* guard */
        protection(DATA + 0x1000, prot);
        assert_string_equal(prot, "rw-p"); /* data is not executable because the stack is */
        fake_reset();
    }
    make_tiny(&t);
    t.stack.p_type = PT_NULL;
    put_file("tiny", &t, sizeof t);
    assert_int_equal(load("./tiny", no_strings), 0);
    protection(result.sp, prot);
    assert_string_equal(prot, "rw-p");
    fake_reset();
}

static void alignment_is_honoured(void **state) {
    (void)state;
    struct tiny t;
    make_tiny(&t);
    const struct patch patches[] = {DYN, {SEG(data, p_align), 0x400000}};
    for (size_t i = 0; i < ARRAY_LEN(patches); i++) patch_tiny(&t, &patches[i]);
    put_file("tiny", &t, sizeof t);
    assert_int_equal(load("./tiny", no_strings), 0);
    assert_int_equal((result.entry - t.head.e_entry) % 0x400000, 0);
    fake_reset();
}

static void occupied_addresses_are_named(void **state) {
    (void)state;
    struct tiny t;
    make_tiny(&t);
    put_file("tiny", &t, sizeof t);
    void *p =
        mmap((void *)(BASE + 0x2000), 0x1000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_int_equal((gaddr)p, BASE + 0x2000);
    assert_int_equal(load("./tiny", no_strings), -ENOMEM);
    assert_string_equal(result.why, "needs the addresses 0x20000000-0x20004000, which are not free");
    munmap(p, 0x1000);
    fake_reset();
}

static void set_interp(struct tiny *t, const char *path) {
    t->spare = (Elf64_Phdr){.p_type = PT_INTERP, .p_offset = 0x1800, .p_filesz = strlen(path) + 1};
    strcpy(t->bytes + 0x800, path);
}

static void bad_interpreters(void **state) {
    (void)state;
    struct tiny t, interp;
    make_tiny(&t);
    static const struct {
        const char *path;
        struct patch patch;
        size_t keep;
        int error;
    } rows[] = {
        {"/nonexistent/ld.so", {0}, 0, ENOENT},
        {"", {0}, 0, EACCES}, /* the current directory */
        {"/tmp", {0}, 0, EACCES},
        {"/dev/null", {0}, 0, EACCES},
        {"/etc/passwd", {0}, 0, EACCES},
        {"./interp", {HEAD(e_ident), 0}, 0, ELIBBAD},
        {"./interp", {HEAD(e_machine), EM_RISCV}, 0, ELIBBAD},
        {"./interp", {HEAD(e_phnum), 0}, 0, ELIBBAD},
        {"./interp", {HEAD(e_phoff), 0x100000}, 0, ELIBBAD},
        {"./interp", {HEAD(e_type), ET_REL}, 0, 0}, /* the kernel notices too late */
        {"./interp", {0}, 63, EIO},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        make_tiny(&t);
        set_interp(&t, rows[i].path);
        if (!rows[i].path[0]) t.spare.p_filesz = 2, t.bytes[0x801] = '\0';
        put_file("tiny", &t, sizeof t);
        make_tiny(&interp);
        patch_tiny(&interp, &rows[i].patch);
        put_file("interp", &interp, rows[i].keep ? rows[i].keep : sizeof interp);
        char name[64];
        snprintf(name, sizeof name, "interp %zu %s", i, rows[i].path);
        assert_int_equal(check("./tiny", NULL, 0), -rows[i].error);
        assert_int_equal(same(name, "./tiny", no_strings, no_strings).error, rows[i].error);
        fake_reset();
    }
}

/* --- permissions --- */

static void permissions(void **state) {
    (void)state;
    char why[160];
    struct tiny t;
    make_tiny(&t);
    put_file("plain", &t, sizeof t);
    chmod("plain", 0644);
    assert_int_equal(check("./plain", why, sizeof why), -EACCES);
    assert_string_equal(why, "no execute permission");
    assert_int_equal(check("/tmp", why, sizeof why), -EACCES);
    assert_string_equal(why, "is a directory");
    assert_int_equal(check("/dev/null", why, sizeof why), -EACCES);

    put_file("busy", &t, sizeof t);
    int writer = open("busy", O_WRONLY);
    int native = run("./busy", no_strings, no_strings, run_native).error;
    long checked = check("./busy", why, sizeof why);
    assert_true(checked == -native || checked == 0); /* 0 on kernels before 6.14 */
    close(writer);
    assert_int_equal(check("./busy", NULL, 0), 0);
}

static void reasons(void **state) {
    (void)state;
    char why[160];
    struct tiny t;
    put_text("text", "echo hello\n");
    assert_int_equal(check("./text", why, sizeof why), -ENOEXEC);
    assert_string_equal(why, "not an ELF file and no #! line");
    put_text("text", "");
    assert_int_equal(check("./text", why, sizeof why), -ENOEXEC);
    assert_string_equal(why, "empty file");
    make_tiny(&t);
    t.head.e_machine = EM_AARCH64;
    put_file("tiny", &t, sizeof t);
    check("./tiny", why, sizeof why);
    assert_string_equal(why, "built for aarch64");
    t.head.e_machine = EM_386;
    put_file("tiny", &t, sizeof t);
    check("./tiny", why, sizeof why);
    assert_string_equal(why, "32-bit program");
    make_tiny(&t);
    put_file("tiny", &t, 100);
    check("./tiny", why, sizeof why);
    assert_string_equal(why, "program headers are truncated");
    char small[8];
    check("./tiny", small, sizeof small);
    assert_string_equal(small, "program");
}

/* --- scripts --- */

static void script_lines(void **state) {
    (void)state;
    static const struct {
        const char *line, *interp, *arg; /* interp NULL: refused */
    } rows[] = {
        {"#!/bin/sh\n", "/bin/sh", NULL},
        {"#!/bin/sh", "/bin/sh", NULL},
        {"#! \t /bin/sh \t \n", "/bin/sh", NULL},
        {"#!/bin/sh -e\nrest", "/bin/sh", "-e"},
        {"#!/bin/sh  -e  -x two \t\n", "/bin/sh", "-e  -x two"},
        {"#!/bin/sh -e", "/bin/sh", "-e"},
        {"#!/bin/sh\r\n", "/bin/sh\r", NULL},
        {"#!\n", NULL, NULL},
        {"#!  \t \n", NULL, NULL},
        {"#!", "", NULL},
        {"# !/bin/sh\n", NULL, NULL},
        {"#", NULL, NULL},
    };
    struct script_line s;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        memset(&s, 0, sizeof s);
        strcpy(s.text, rows[i].line);
        assert_int_equal(script_split(&s), rows[i].interp ? 0 : -ENOEXEC);
        if (!rows[i].interp) continue;
        assert_string_equal(s.interp, rows[i].interp);
        if (rows[i].arg)
            assert_string_equal(s.arg, rows[i].arg);
        else
            assert_null(s.arg);
    }
    /* The name must be seen whole; an argument may be cut. */
    memset(s.text, 'x', sizeof s.text);
    memcpy(s.text, "#!", 2);
    assert_int_equal(script_split(&s), -ENOEXEC);
    memset(s.text, 'x', sizeof s.text);
    memcpy(s.text, "#!/bin/sh ", 10);
    assert_int_equal(script_split(&s), 0);
    assert_string_equal(s.interp, "/bin/sh");
    assert_int_equal(strlen(s.arg), SCRIPT_LINE - 11);
    memset(s.text, ' ', sizeof s.text);
    memcpy(s.text, "#!", 2);
    assert_int_equal(script_split(&s), -ENOEXEC);
}

static void scripts_run_as_under_the_kernel(void **state) {
    (void)state;
    static const char *const texts[] = {
        "#!/bin/echo\n",
        "#!/bin/echo one argument  only \n",
        "#!/bin/echo",
        "#!  /bin/echo\tx",
        "#!\n",
        "#!",
        "#! \n",
        "#!/nonexistent\n",
        "#!/tmp\n",
        "#!/etc/passwd\n",
        "#!/bin/echo\r\n",
        "#!./self\n",
        "#!/usr/bin/env echo\n",
        "#!/bin/sh\necho \"$0\" \"$@\"; tr '\\0' '|' < /proc/$$/cmdline > /dev/null\n",
        "plain text\n",
        "",
    };
    char *argv[] = {"given", "a", "b c", NULL}, *env[] = {"PATH=/usr/bin:/bin", NULL};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        put_text("self", texts[i]);
        same(texts[i], "./self", argv, env);
        same(texts[i], "./self", no_strings, env);
    }
    char line[600];
    for (size_t n = 240; n < 270; n++) { /* around the limit: in the name, in the argument */
        memset(line, '/', sizeof line);
        memcpy(line, "#!", 2);
        memcpy(line + n - 8, "bin/echo\n", 10);
        put_text("self", line);
        same("long name", "./self", argv, env);
        memcpy(line, "#!/bin/echo ", 12);
        put_text("self", line);
        same("long argument", "./self", argv, env);
    }
}

static void nested_scripts(void **state) {
    (void)state;
    put_text("s0", "#!/bin/echo arg0\n");
    char name[8], text[32];
    for (int i = 1; i < 7; i++) {
        snprintf(name, sizeof name, "s%d", i);
        snprintf(text, sizeof text, "#!./s%d arg%d\n", i - 1, i);
        put_text(name, text);
    }
    char *argv[] = {"given", "last", NULL};
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "./s%d", i);
        struct outcome native = same(name, name, argv, no_strings);
        assert_int_equal(native.error, i < 5 ? 0 : ELOOP);
        if (i == 2) assert_string_equal(native.output, "arg0 ./s0 arg1 ./s1 arg2 ./s2 last\n");
    }
    assert_int_equal(load("./s1", argv), 0);
    assert_string_equal(result.comm, "s1");
    assert_string_equal((char *)aux(AT_EXECFN), "./s1");
    char real[4096] = "";
    assert_non_null(realpath("/bin/echo", real));
    assert_string_equal(result.exe_path, real);
    fake_reset();
}

static int open_files(void) {
    int n = 0;
    for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void nothing_stays_open(void **state) {
    (void)state;
    int before = open_files();
    put_text("s0", "#!/bin/echo arg0\n");
    put_text("s1", "#!./s0\n");
    put_text("loop", "#!./loop\n");
    put_text("none", "#!/nonexistent\n");
    static const char *const paths[] = {"./s1", "./loop", "./none", "/bin/true"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        check(paths[i], NULL, 0);
        load(paths[i], no_strings);
        fake_reset();
    }
    assert_int_equal(open_files(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_real_programs),
        cmocka_unit_test(empty_argv_gets_a_name),
        cmocka_unit_test(many_long_arguments),
        cmocka_unit_test(stack_is_laid_out_like_the_kernels),
        cmocka_unit_test(auxv_has_the_kernels_order),
        cmocka_unit_test(hostile_headers),
        cmocka_unit_test(bss_is_zeroed),
        cmocka_unit_test(stack_protection),
        cmocka_unit_test(alignment_is_honoured),
        cmocka_unit_test(occupied_addresses_are_named),
        cmocka_unit_test(bad_interpreters),
        cmocka_unit_test(permissions),
        cmocka_unit_test(reasons),
        cmocka_unit_test(script_lines),
        cmocka_unit_test(scripts_run_as_under_the_kernel),
        cmocka_unit_test(nested_scripts),
        cmocka_unit_test(nothing_stays_open),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
