/* Start of the runtime: moves itself out of the program's way, reads its orders, loads the program, runs it.
 *
 * Arguments: reprise-rt --start key=value,... PATH -- ARGV... ; the same form comes from the command line and from our own
 * execve. Keys: cache, cachedir, trace, policy, execfd (PATH is open there), mask (the program's signal mask, hex). */
#include <elf.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/prctl.h>

#include "engine/engine.h"
#include "engine/kept.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/hash.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"
#include "sphere/code_watch.h"
#include "sphere/gate.h"
#include "sphere/legacy.h"
#include "sphere/loader.h"
#include "sphere/runtime.h"
#include "sphere/signals.h"
#include "sphere/special_insn.h"
#include "sphere/vdso.h"

struct runtime the_runtime;

/* ---- stage 0: position independent, nothing relocated yet ---- */

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
extern const Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));
extern char start_mover[] __attribute__((visibility("hidden"))), start_mover_end[] __attribute__((visibility("hidden")));

struct move {
    uint64_t from, len, to;
};

void start_move(uint64_t *sp);
static void start_here(void *sp);

void start_move(uint64_t *sp) {
    uint64_t base = (uint64_t)&__ehdr_start;
    uint64_t delta = LAYOUT_RT - base;
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(base + __ehdr_start.e_phoff);
    struct move moves[16];
    int n = 0;
    for (int i = 0; i < __ehdr_start.e_phnum && n < 15; i++) {
        if (ph[i].p_type != PT_LOAD) continue;
        uint64_t lo = PAGE_DOWN(base + ph[i].p_vaddr), file_end = PAGE_UP(base + ph[i].p_vaddr + ph[i].p_filesz);
        uint64_t end = PAGE_UP(base + ph[i].p_vaddr + ph[i].p_memsz);
        if (file_end > lo && ph[i].p_filesz) moves[n++] = (struct move){lo, file_end - lo, lo + delta};
        uint64_t bss = ph[i].p_filesz ? file_end : lo;
        if (end > bss) moves[n++] = (struct move){bss, end - bss, bss + delta};
    }
    long page = SYS(mmap, 0, PAGE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_failed(page)) SYS(exit_group, 125);
    const char *from = start_mover;
    for (char *to = (char *)page; from < (const char *)start_mover_end;) *to++ = *from++;
    void (*mover)(struct move *, long, uint64_t, void *) = (void (*)(struct move *, long, uint64_t, void *))page;
    mover(moves, n, (uint64_t)start_here + delta, sp);
}

static void relocate(void) {
    uint64_t base = (uint64_t)&__ehdr_start;
    const Elf64_Rela *rela = NULL;
    uint64_t size = 0;
    for (const Elf64_Dyn *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_RELA) rela = (const Elf64_Rela *)(base + d->d_un.d_ptr);
        if (d->d_tag == DT_RELASZ) size = d->d_un.d_val;
    }
    for (uint64_t i = 0; i < size / sizeof *rela; i++)
        *(uint64_t *)(base + rela[i].r_offset) = base + (uint64_t)rela[i].r_addend;
}

/* ---- stage 1: ordinary code ---- */

struct orders {
    const char *path;
    char **argv, **envp;
    int exec_fd;
    bool has_mask;
    uint64_t mask;
    const struct policy *policy;
};

static uint64_t number(const char *s, unsigned base) {
    uint64_t v = 0;
    for (; *s && *s != ','; s++) {
        unsigned d = *s >= 'a' ? (unsigned)(*s - 'a') + 10 : (unsigned)(*s - '0');
        if (d >= base) break;
        v = v * base + d;
    }
    return v;
}

static bool is_value(const char *s, const char *want) {
    size_t n = strlen(want);
    return strncmp(s, want, n) == 0 && (s[n] == ',' || s[n] == '\0');
}

static void copy_value(char *to, size_t cap, const char *value) {
    size_t n = 0;
    while (value[n] && value[n] != ',' && n + 1 < cap) n++;
    memcpy(to, value, n);
    to[n] = '\0';
}

static void read_option(struct orders *o, const char *key) {
    const char *value = strchr(key, '=');
    if (!value) return;
    value++;
    if (str_starts(key, "cache=")) the_runtime.use_cache = *value == '1';
    if (str_starts(key, "cachedir=")) copy_value(the_runtime.cache_dir, sizeof the_runtime.cache_dir, value);
    if (str_starts(key, "trace=")) trace_level = (int)number(value, 10);
    if (str_starts(key, "policy=")) {
        if (is_value(value, "count")) o->policy = &policy_count;
        if (is_value(value, "ticks")) o->policy = &policy_ticks;
    }
    if (str_starts(key, "execfd=")) o->exec_fd = (int)number(value, 10);
    if (str_starts(key, "mask=")) {
        o->has_mask = true;
        o->mask = number(value, 16);
    }
}

static void read_options(struct orders *o, const char *text) {
    size_t kept = 0;
    for (const char *key = text; *key;) {
        const char *end = strchr(key, ',');
        size_t n = end ? (size_t)(end - key) : strlen(key);
        read_option(o, key);
        /* what concerns this execve alone is not handed on */
        if (!str_starts(key, "execfd=") && !str_starts(key, "mask=") && kept + n + 2 < sizeof the_runtime.options) {
            if (kept) the_runtime.options[kept++] = ',';
            memcpy(the_runtime.options + kept, key, n);
            kept += n;
        }
        key = end ? end + 1 : key + n;
    }
    the_runtime.options[kept] = '\0';
}

static bool read_orders(struct orders *o, uint64_t *sp) {
    uint64_t argc = sp[0];
    char **argv = (char **)(sp + 1);
    *o = (struct orders){.exec_fd = -1, .policy = &policy_none};
    if (argc < 6 || strcmp(argv[1], "--start") != 0 || strcmp(argv[4], "--") != 0) return false;
    read_options(o, argv[2]);
    o->path = argv[3];
    o->argv = argv + 5;
    o->envp = argv + argc + 1;
    char **e = o->envp;
    while (*e) e++;
    the_runtime.kernel_auxv = (uint64_t *)(e + 1);
    return true;
}

/* Identifies this very runtime: kept translations of another one are not used. */
static uint64_t own_build(void) {
    uint64_t base = (uint64_t)&__ehdr_start;
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(base + __ehdr_start.e_phoff);
    for (int i = 0; i < __ehdr_start.e_phnum; i++)
        if (ph[i].p_type == PT_NOTE) return hash_bytes((const void *)(base + ph[i].p_vaddr), ph[i].p_memsz, 0);
    return 0;
}

static void keep_own_file(void) {
    long fd = SYS(openat, AT_FDCWD, "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        for (uint64_t *a = the_runtime.kernel_auxv; a[0]; a += 2)
            if (a[0] == AT_EXECFN) fd = SYS(openat, AT_FDCWD, a[1], O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0) die("cannot open the runtime's own file (error %ld); is /proc mounted?", -fd);
    long high = SYS(fcntl, fd, F_DUPFD_CLOEXEC, 900);
    if (high < 0) high = SYS(fcntl, fd, F_DUPFD_CLOEXEC, 100);
    if (high >= 0) SYS(close, fd);
    the_runtime.rt_fd = (int)(high >= 0 ? high : fd);
}

static void bad_pc(struct tblock *t) {
    if (legacy_vsyscall(t)) return;
    struct mapping m;
    bool mapped = aspace_find(t->pc, &m);
    signals_raise_fault(t, 11, mapped ? 2 : 1, t->pc);
    signals_safepoint(t);
}

/* What other processes see of this one: command line, name, memory layout. */
static void show_as_program(const struct load_result *r) {
    struct prctl_mm_map map = {
        .start_code = r->code_start, .end_code = r->code_end, .start_data = r->data_start, .end_data = r->data_end,
        .start_brk = aspace_brk(0), .brk = aspace_brk(0), .start_stack = r->stack_start, .arg_start = r->arg_start,
        .arg_end = r->arg_end, .env_start = r->env_start, .env_end = r->env_end, .auxv = (__u64 *)r->auxv_start,
        .auxv_size = (__u32)(r->auxv_end - r->auxv_start), .exe_fd = (__u32)-1};
    SYS(prctl, PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
    SYS(prctl, PR_SET_NAME, r->comm, 0, 0, 0);
}

static void start_here(void *sp) {
    relocate();
    struct orders o;
    if (!read_orders(&o, sp)) die("this is the runtime of reprise; use `reprise run -- CMD`");
    keep_own_file();
    aspace_start(the_runtime.seed);
    engine_host = (struct engine_host){.code_at = code_watch_code_at, .syscall = gate_on_syscall, .special = special_insn,
                                       .bad_pc = bad_pc, .safepoint = signals_safepoint,
                                       .oldest_epoch = threads_oldest_epoch, .claim = aspace_claim, .unclaim = aspace_unclaim, .kept_at = aspace_kept_at};
    engine_start(o.policy, the_runtime.rt_fd);
    if (the_runtime.use_cache && the_runtime.cache_dir[0]) kept_start(the_runtime.cache_dir, own_build());

    struct process *p = arena_alloc(sizeof *p);
    p->pid = (int)SYS(getpid);
    struct thread *t = thread_new(p);
    thread_adopt(t);
    uint64_t mask = 0;
    SYS(rt_sigprocmask, 0, 0, &mask, 8);
    t->sigmask = o.has_mask ? o.mask : mask;
    signals_start(p, t->sigmask);

    gaddr vdso = vdso_move(the_runtime.kernel_auxv);
    struct exec_image image = {o.exec_fd, o.path, o.argv, o.envp};
    if (image.fd < 0) image.fd = (int)SYS(openat, AT_FDCWD, o.path, O_RDONLY | O_CLOEXEC);
    char why[160] = "";
    /* our own execve has checked already */
    long err = image.fd < 0 ? image.fd : o.exec_fd >= 0 ? 0 : loader_check(image.fd, why, sizeof why);
    static struct load_result r;
    if (err == 0) err = loader_load(&image, the_runtime.kernel_auxv, vdso, &r);
    if (err) {
        if (why[0])
            say("%s: %s", o.path, why);
        else
            say("%s: cannot be executed (error %ld)", o.path, -err);
        SYS(exit_group, err == -ENOENT ? 127 : 126);
    }
    SYS(close, image.fd);
    SYS(close, r.exe_fd);
    aspace_set_brk(r.brk_start);
    memcpy(the_runtime.exe_path, r.exe_path, sizeof the_runtime.exe_path);
    show_as_program(&r);
    t->tb->pc = r.entry;
    t->tb->gpr[RSP] = r.sp;
    t->tb->rflags = 0x202;
    signals_apply_mask(t);
    engine_run(t->tb);
}
