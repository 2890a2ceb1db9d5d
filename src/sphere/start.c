/* Start of the runtime: reads its orders, loads the program, runs it.
 *
 * Arguments: reprise-rt --start key=value,... PATH -- ARGV... ; the same form comes from the command line and from our own
 * execve. Keys: cache, cachedir, seed (hex), cachesize and cachelimit (KB), trace,
 * traces (the descriptor behind the runtime's own leads to the trace table), single-from, crash, policy, mode, store, verify, cpu; from execve only: execfd (PATH is
 * open there), rtfd (so is the runtime),
 * mask (the program's signal mask, hex), ignored (signals, hex), vdso (lengths of its pieces), cpuid (what it answers), boot (which one this is, kept_mark.h), limits, mdwe, notsc, traced, stream, ring, oldring, parent, outs (recording), crowded (no descriptors are left). After PATH may come the program's seccomp
 * filters, one argument each. */
#include <asm/stat.h>
#include <elf.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/prctl.h>

#include "ckpt/rt/save.h"
#include "ckpt/rt/track.h"
#include "engine/engine.h"
#include "engine/kept_dir.h"
#include "engine/kept_mark.h"
#include "engine/tables.h"
#include "inproc/arena.h"
#include "inproc/fds.h"
#include "inproc/fmt.h"
#include "inproc/hash.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/apart.h"
#include "sphere/aspace.h"
#include "sphere/code_watch.h"
#include "sphere/cpu_level.h"
#include "sphere/cpuid_answers.h"
#include "sphere/crash.h"
#include "sphere/debug.h"
#include "sphere/debug_watch.h"
#include "sphere/gate.h"
#include "sphere/hurry.h"
#include "sphere/legacy.h"
#include "sphere/loader.h"
#include "sphere/mode.h"
#include "sphere/outputs.h"
#include "sphere/page_log.h"
#include "sphere/record.h"
#include "sphere/replay.h"
#include "sphere/restore.h"
#include "sphere/runtime.h"
#include "sphere/shared_values.h"
#include "sphere/signals.h"
#include "sphere/special_insn.h"
#include "sphere/sys/special.h"
#include "sphere/trace_table.h"
#include "sphere/traced.h"
#include "sphere/vdso.h"

struct runtime the_runtime;

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
void start_here(uint64_t *sp); /* start.S */

struct orders {
    const char *path;
    char **argv, **envp;
    int exec_fd, rt_fd;
    bool has_mask;
    uint64_t mask;
    bool crowded;
    bool crash;
    bool has_loop, has_rorx; /* somebody else has decided about loop_is_quick, call_index_shift */
    const char *limits;
    bool has_ignored;
    uint64_t ignored; /* signals */
    const char *vdso;
    char **filters; /* up to argv[-1], which is "--" */
    const struct policy *policy;
    int channel_fd, socket_fd, work_fd, image_fd;
    uint32_t work_slot;
    struct stream stream;
    uint64_t parent;
    uint32_t old_ring;
    uint64_t outs[3];
    bool
        unrecorded; /* the recording was stopped, or has no room: the runtime's descriptors are those of a recorded process */
    bool has_traces; /* the second descriptor of ours leads to the trace table */
    bool no_tsc;     /* PR_SET_TSC lives through execve */
    bool traced;     /* the program that has ended in this execve was traced */
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
    if (str_starts(key, "cachesize=")) cache_set_size(number(value, 10) << 10);
    if (str_starts(key, "seed=")) the_runtime.seed = number(value, 16);
    if (str_starts(key, "cachelimit=")) kept_dir_set_limit(number(value, 10) << 10);
    if (str_starts(key, "trace=")) trace_level = (int)number(value, 10);
    if (str_starts(key, "stats=")) stats_wanted = *value == '1';
    if (str_starts(key, "tick-trace=")) tick_trace = number(value, 10);
    if (str_starts(key, "single-from=")) single_from = number(value, 10);
    if (str_starts(key, "loop=")) {
        o->has_loop = true;
        loop_is_quick = *value == '1';
    }
    if (str_starts(key, "rorx=")) {
        o->has_rorx = true;
        call_index_shift = *value == '1' ? CALL_ALIGN_BITS : 0;
    }
    if (str_starts(key, "crash=")) o->crash = true;
    if (str_starts(key, "stop-at=")) stream_stop_at = number(value, 10);
    if (str_starts(key, "ckpt=")) save_interval_ms = number(value, 10);
    if (str_starts(key, "ckpt-stretch=")) save_stretches = *value != '0';
    if (str_starts(key, "track=")) track_wanted = is_value(value, "uffd") ? TRACK_UFFD : TRACK_MPROTECT;
    if (str_starts(key, "policy=")) {
        if (is_value(value, "count")) o->policy = &policy_count;
        if (is_value(value, "ticks")) o->policy = &policy_ticks;
        if (is_value(value, "order")) o->policy = &policy_order;
    }
    if (str_starts(key, "mode=")) {
        the_mode = is_value(value, "record") ? &mode_record : is_value(value, "replay") ? &mode_replay : &mode_run;
        o->policy = the_mode->policy;
    }
    if (str_starts(key, "cpu=")) cpu_level = is_value(value, "v2") ? 2 : is_value(value, "v3") ? 3 : 0;
    if (str_starts(key, "store=")) copy_value(the_runtime.store, sizeof the_runtime.store, value);
    if (str_starts(key, "count=") && *value == '1') o->policy = &policy_order_count;
    if (str_starts(key, "verify=")) the_runtime.verify = *value == '1';
    if (str_starts(key, "workfd=")) o->work_fd = (int)number(value, 10);
    if (str_starts(key, "pagesfd=")) page_log_start((int)number(value, 10));
    if (str_starts(key, "slot=")) o->work_slot = (uint32_t)number(value, 10);
    if (str_starts(key, "imagefd=")) o->image_fd = (int)number(value, 10);
    if (str_starts(key, "chanfd=")) o->channel_fd = (int)number(value, 10);
    if (str_starts(key, "sockfd=")) o->socket_fd = (int)number(value, 10);
    if (str_starts(key, "stream=")) o->stream.number = number(value, 10);
    if (str_starts(key, "ring=")) o->stream.ring = (uint32_t)number(value, 10);
    if (str_starts(key, "oldring=")) o->old_ring = (uint32_t)number(value, 10);
    if (str_starts(key, "parent=")) o->parent = number(value, 10);
    if (str_starts(key, "outs=")) {
        o->outs[1] = read_hex(&value);
        if (*value == ':') value++;
        o->outs[2] = read_hex(&value);
    }
    if (str_starts(key, "traces=")) o->has_traces = true;
    if (str_starts(key, "unrecorded=")) {
        o->unrecorded = true;
        trace_table_of_channel(*value == '1');
    }
    if (str_starts(key, "notsc=")) o->no_tsc = true;
    if (str_starts(key, "traced=")) o->traced = true;
    if (str_starts(key, "execfd=")) o->exec_fd = (int)number(value, 10);
    if (str_starts(key, "rtfd=")) o->rt_fd = (int)number(value, 10);
    if (str_starts(key, "mdwe=")) the_runtime.mdwe = (uint32_t)number(value, 10);
    if (str_starts(key, "mask=")) {
        o->has_mask = true;
        o->mask = number(value, 16);
    }
    if (str_starts(key, "crowded=")) o->crowded = true;
    if (str_starts(key, "limits=")) o->limits = value;
    if (str_starts(key, "ignored=")) {
        o->has_ignored = true;
        o->ignored = number(value, 16);
    }
    if (str_starts(key, "vdso=")) o->vdso = value;
    if (str_starts(key, "cpuid=")) cpuid_from_text(value);
    if (str_starts(key, "boot=")) kept_set_boot(number(value, 16));
}

/* What concerns one execve alone is not handed on. */
static bool is_for_once(const char *key) {
    static const char *const keys[] = {
        "execfd=", "rtfd=",   "mask=",    "mdwe=",    "notsc=",  "crowded=", "limits=",  "chanfd=",
        "sockfd=", "workfd=", "slot=",    "imagefd=", "stream=", "ring=",    "oldring=", "parent=",
        "outs=",   "traced=", "ignored=", "vdso=",    "cpuid=",  "boot="};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (str_starts(key, keys[i])) return true;
    return false;
}

static void read_options(struct orders *o, const char *text) {
    size_t kept = 0;
    for (const char *key = text; *key;) {
        const char *end = strchr(key, ',');
        size_t n = end ? (size_t)(end - key) : strlen(key);
        read_option(o, key);
        if (!is_for_once(key) && kept + n + 2 < sizeof the_runtime.options) {
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
    *o = (struct orders){.exec_fd = -1,
                         .rt_fd = -1,
                         .channel_fd = -1,
                         .socket_fd = -1,
                         .work_fd = -1,
                         .image_fd = -1,
                         .policy = &policy_none,
                         .parent = UINT64_MAX,
                         .old_ring = CHANNEL_RINGS,
                         .outs = {0, 1u << 1, 1u << 2}};
    if (argc < 6 || strcmp(argv[1], "--start") != 0) return false;
    read_options(o, argv[2]);
    o->path = argv[3];
    o->filters = argv + 4;
    char **dashes = o->filters;
    while (*dashes && strcmp(*dashes, "--") != 0) dashes++;
    if (!*dashes || !dashes[1]) return false;
    o->argv = dashes + 1;
    o->envp = argv + argc + 1;
    char **e = o->envp;
    while (*e) e++;
    the_runtime.kernel_auxv = (uint64_t *)(e + 1);
    for (const uint64_t *a = the_runtime.kernel_auxv; a[0]; a += 2)
        if (a[0] == AT_HWCAP2) the_runtime.has_fsgsbase = a[1] >> 1 & 1;
    return true;
}

/* Identifies this very runtime: kept translations of another one are not used. */
static uint64_t own_build(void) {
    uint64_t base = (uint64_t)&__ehdr_start;
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(base + __ehdr_start.e_phoff);
    for (int i = 0; i < __ehdr_start.e_phnum; i++)
        if (ph[i].p_type == PT_NOTE) return hash_bytes((const void *)ph[i].p_vaddr, ph[i].p_memsz, 0);
    return 0;
}

#define RLIMIT_NOFILE_ 7
#define OWN_FDS_BELOW 65536  /* where they are put in a row */
#define FD_TABLE_MODEST 4096 /* a table for higher numbers costs memory, and time at each fork */

/* Duplicates n descriptors to where the program hardly looks: just above its limit if that can be, else high up. */
static long move_up(int first, uint32_t n) {
    uint64_t limit[2] = {0, 0};
    SYS(prlimit64, 0, RLIMIT_NOFILE_, 0, limit);
    long high = -EINVAL;
    if (limit[0] < FD_TABLE_MODEST) {
        uint64_t more[2] = {limit[0] + 8, MAX(limit[1], limit[0] + 8)}; /* beyond the hard one only with privilege */
        SYS(prlimit64, 0, RLIMIT_NOFILE_, more, 0);
        high = fd_move_own(first, n, (int)limit[0]);
        SYS(prlimit64, 0, RLIMIT_NOFILE_, limit, 0);
    }
    if (high < 0) high = fd_move_own(first, n, 900);
    if (high < 0) high = fd_move_own(first, n, limit[0] > 100 ? 100 : (int)limit[0] / 2);
    return high;
}

static long open_own_file(void) {
    long fd = SYS(openat, AT_FDCWD, "/proc/self/exe", O_PATH);
    if (fd < 0) {
        for (uint64_t *a = the_runtime.kernel_auxv; a[0]; a += 2)
            if (a[0] == AT_EXECFN) fd = SYS(openat, AT_FDCWD, a[1], O_PATH);
    }
    if (fd < 0) die("cannot open the runtime's own file (error %ld)", -fd);
    return fd;
}

/* Where our processes have the numbers that the controller knows them by, in whatever PID namespace they are. Not if it is
 * mounted for another one than ours, which is the controller's, too, when all begins. */
static long open_proc(void) {
    long fd = SYS(openat, AT_FDCWD, "/proc", O_PATH);
    if (fd >= 0 && channel_number_in((int)fd) == SYS(getpid)) return fd;
    if (fd >= 0) SYS(close, fd);
    return open_own_file(); /* something has to be there */
}

static bool room_at(int at, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (SYS(fcntl, at + (int)i, F_GETFD) >= 0) return false;
    return true;
}

/* Moves n descriptors to where they are in a row, for a moment: the first one's number, or -1. A soft limit is no obstacle. */
static int side_by_side(const int *from, uint32_t n) {
    uint64_t limit[2] = {0, 0};
    SYS(prlimit64, 0, RLIMIT_NOFILE_, 0, limit);
    const uint64_t more[2] = {MIN(limit[1], OWN_FDS_BELOW), limit[1]};
    if (more[0] > limit[0]) SYS(prlimit64, 0, RLIMIT_NOFILE_, more, 0);
    int at = 3, done = 0;
    while (at < OWN_FDS_BELOW && !room_at(at, n)) at++;
    for (uint32_t i = 0; at < OWN_FDS_BELOW && i < n; i++) done += SYS(dup3, from[i], at + (int)i, 0) >= 0;
    if (more[0] > limit[0]) SYS(prlimit64, 0, RLIMIT_NOFILE_, limit, 0);
    if (done < (int)n) {
        if (done) fds_close((uint32_t)at, (uint32_t)at + n - 1); /* all or none */
        return -1;
    }
    for (uint32_t i = 0; i < n; i++) SYS(close, from[i]);
    return at;
}

/* Standard execution: the runtime's own file, and the trace table behind it if that can be had. */
static int own_files_of_run(void) {
    int fd = (int)open_own_file();
    long traces = trace_table_make();
    const int both[] = {fd, (int)traces};
    int pair = traces < 0 ? -1 : side_by_side(both, 2);
    if (pair < 0 && traces >= 0) SYS(close, traces);
    if (pair >= 0) {
        fd = pair;
        the_runtime.own_fds = 2;
        fmt_into(the_runtime.options + strlen(the_runtime.options), 16, ",traces=1");
    }
    long high = move_up(fd, the_runtime.own_fds);
    if (high < 0) return fd;
    fds_close((uint32_t)fd, (uint32_t)fd + the_runtime.own_fds - 1);
    return (int)high;
}

/* Our descriptors, the first being the runtime's own file; they live through execve, which needs nothing else. */
static int own_files(const struct orders *o) {
    bool two = o->has_traces || o->channel_fd >= 0 || the_mode == &mode_replay;
    bool four = o->socket_fd >= 0 || o->unrecorded || the_mode == &mode_record;
    the_runtime.own_fds = four ? 4 : two ? 2 : 1;
    if (o->rt_fd >= 0) return o->rt_fd;
    if (the_runtime.own_fds == 1) return own_files_of_run();
    const int from[] = {(int)open_own_file(), o->channel_fd, o->socket_fd, (int)open_proc()};
    int at = side_by_side(from, the_runtime.own_fds);
    if (at < 0) die("the limit of open files leaves no room for %u descriptors of the runtime", the_runtime.own_fds);
    long high = move_up(at, the_runtime.own_fds);
    if (high < 0) return at;
    fds_close((uint32_t)at, (uint32_t)at + the_runtime.own_fds - 1);
    return (int)high;
}

static void bad_pc(struct tblock *t) {
    if (legacy_vsyscall(t)) return;
    if (unlikely(debug_is_diverted) && debug_break_without_code(t)) return;
    special_fetch_fault(t, t->pc);
}

/* What other processes see of this one: command line, name, memory layout. */
static void show_as_program(const struct load_result *r) {
    struct prctl_mm_map map = {.start_code = r->code_start,
                               .end_code = r->code_end,
                               .start_data = r->data_start,
                               .end_data = r->data_end,
                               .start_brk = aspace_brk(0),
                               .brk = aspace_brk(0),
                               .start_stack = r->stack_start,
                               .arg_start = r->arg_start,
                               .arg_end = r->arg_end,
                               .env_start = r->env_start,
                               .env_end = r->env_end,
                               .auxv = (__u64 *)r->auxv_start,
                               .auxv_size = (__u32)(r->auxv_end - r->auxv_start),
                               .exe_fd = (__u32)-1};
    the_runtime.shown = SYS(prctl, PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0) == 0;
    the_runtime.arg_start = r->arg_start;
    the_runtime.arg_end = r->arg_end;
    the_runtime.env_start = r->env_start;
    the_runtime.env_end = r->env_end;
    the_runtime.auxv_start = r->auxv_start;
    the_runtime.auxv_end = r->auxv_end;
    SYS(prctl, PR_SET_NAME, r->comm, 0, 0, 0);
}

/* Which file runs, and a word about privileges that it does not get. */
static void note_exe(const struct orders *o, const struct load_result *r) {
    memcpy(the_runtime.exe_path, r->exe_path, sizeof the_runtime.exe_path);
    if (!the_runtime.exe_path[0] && o->path[0] == '/') /* no /proc to ask */
        fmt_into(the_runtime.exe_path, sizeof the_runtime.exe_path, "%s", o->path);
    the_runtime.exe_map = r->code_start;
    struct stat st;
    if (SYS(fstat, r->exe_fd, &st) != 0) return;
    the_runtime.exe_dev = st.st_dev;
    the_runtime.exe_ino = st.st_ino;
    bool user = (st.st_mode & 04000) && st.st_uid != SYS(geteuid);
    bool group = (st.st_mode & 02010) == 02010 && st.st_gid != SYS(getegid);
    if ((user || group) && SYS(prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        say("%s: %s ignored, runs without the privilege", o->path, user ? "set-user-id" : "set-group-id");
}

/* Of errors that the command has not found before the runtime began. */
static const char *error_text(long err) {
    switch (-err) {
    case EMFILE: return "too many open files (ulimit -n)";
    case ENFILE: return "too many open files in the system";
    case ENOMEM: return "not enough memory (ulimit -v?)";
    case EIO: return "input/output error";
    default: return NULL;
    }
}

/* Does not return. Natively a program that fails behind execve's point of no return is killed; a failure of the command
 * line's own program has a status of its own. */
static void cannot_load(const struct orders *o, long err, const char *why) {
    if (o->has_mask) { /* comes from execve */
        struct ksigaction dfl = {0};
        SYS(rt_sigaction, 11, &dfl, 0, 8);
        uint64_t none = 0;
        SYS(rt_sigprocmask, 2, &none, 0, 8);
        long pid = SYS(getpid);
        SYS(kill, pid, 11);
    }
    if (!why[0] && error_text(err)) why = error_text(err);
    if (why[0])
        say("%s: %s", o->path, why);
    else
        say("%s: cannot be executed (error %ld)", o->path, -err);
    SYS(exit_group, err == -ENOENT ? 127 : 126);
}

/* A file that may be executed but not read is left to the kernel. */
static long open_program(const struct orders *o, int rt_fd) {
    if (o->exec_fd >= 0) return o->exec_fd;
    long fd = SYS(openat, AT_FDCWD, o->path, O_RDONLY | O_CLOEXEC);
    if (fd == -EACCES && !o->has_mask && SYS(faccessat2, AT_FDCWD, o->path, 1 /* X_OK */, AT_EACCESS) == 0) {
        say("%s: cannot be read, runs outside of Reprise", o->path);
        SYS(fcntl, rt_fd, F_SETFD, 1);
        fd = SYS(execve, o->path, o->argv, o->envp);
    }
    return fd;
}

struct loading {
    const struct orders *o;
    int rt_fd;
    struct load_result r;
};

/* All that needs descriptors. */
static void load_program(void *arg) {
    struct loading *l = arg;
    const struct orders *o = l->o;
    gaddr vdso = vdso_move(the_runtime.kernel_auxv, !the_mode->hides_vdso, o->vdso);
    if (the_mode->hides_vdso) vdso = vdso_map_own();
    struct exec_image image = {(int)open_program(o, l->rt_fd), o->path, o->argv, o->envp};
    char why[160] = "";
    long err = image.fd < 0 ? image.fd : o->has_mask ? 0 : loader_check(image.fd, why, sizeof why);
    if (err == 0) {
        err = loader_load(&image, the_runtime.kernel_auxv, vdso, &l->r);
        memcpy(why, l->r.why, sizeof why);
    }
    if (err) cannot_load(o, err, why);
    note_exe(o, &l->r);
    SYS(close, image.fd);
    if (l->r.exe_fd != image.fd) SYS(close, l->r.exe_fd);
}

void start_here(uint64_t *sp) {
    struct orders o;
    if (!read_orders(&o, sp)) die("this is the runtime of reprise; use `reprise run -- CMD`");
    int rt_fd = own_files(&o);
    struct limits limits;
    limits_start(&limits, o.limits);
    aspace_start(the_runtime.seed);
    engine_host = (struct engine_host){.code_at = code_watch_code_at,
                                       .worn = code_watch_worn,
                                       .syscall = the_mode->syscall,
                                       .tick_budget = the_mode->tick_budget,
                                       .special = special_insn,
                                       .bad_pc = bad_pc,
                                       .bad_target = special_bad_target,
                                       .step_trap = signals_step_trap,
                                       .safepoint = signals_safepoint,
                                       .oldest_epoch = threads_oldest_epoch,
                                       .hurry = hurry_threads,
                                       .is_free = aspace_is_free,
                                       .claim = aspace_claim,
                                       .unclaim = aspace_unclaim,
                                       .kept_at = aspace_kept_at,
                                       .huge_code = aspace_huge_code};
    if (!o.has_loop) loop_is_quick = cpuid_loop_is_quick();
    if (!o.has_rorx) call_index_shift = cpuid_has_bmi2() ? CALL_ALIGN_BITS : 0;
    engine_start(o.policy);
    if (the_runtime.use_cache && the_runtime.cache_dir[0])
        kept_dir_start(the_runtime.cache_dir, own_build() + (uint64_t)call_index_shift);

    struct process *p = arena_alloc(sizeof *p);
    p->pid = (int)SYS(getpid);
    struct files *files = arena_alloc(sizeof *files);
    files->rt_fd = rt_fd;
    p->limits = limits;
    struct thread *t = thread_new(p, files);
    thread_adopt(t);
    uint64_t mask = 0;
    SYS(rt_sigprocmask, 0, 0, &mask, 8);
    t->sigmask = o.has_mask ? o.mask : mask;
    signals_start(p, t->sigmask, o.has_ignored ? &o.ignored : NULL);
    if (o.has_mask && the_mode->kernel_signals)
        signals_block_all(); /* faults come again; sent ones at the first safepoint */

    for (char **f = o.filters; f < o.argv - 1; f++)
        if (!seccomp_from_text(&t->seccomp, *f)) die("a seccomp filter was lost in execve");
    t->tsc_faults = o.no_tsc && the_policy->intercept;
    if (o.no_tsc && !the_policy->intercept) SYS(prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    if (the_mode->insn) special_recorded = the_mode->insn;
    if (the_mode != &mode_run) channel_attach(rt_fd + 1);
    if (the_mode->access) {
        engine_host.has_break = values_has;
        engine_host.at_break = values_break;
    }
    if (the_mode == &mode_replay) engine_host.debug = replay_step_killed;
    if (o.work_fd >= 0) {
        debug_start(o.work_fd, o.work_slot);
        engine_host.debug = debug_enter;
        engine_host.has_break = watch_has_break;
        engine_host.at_break = debug_break;
        engine_host.store = debug_store;
        engine_host.kept_loaded = watch_code_loaded;
    }
    if (the_mode == &mode_replay && o.image_fd >= 0) restore_start(t, o.stream.number, o.image_fd);
    if (the_mode == &mode_replay) replay_start(t, o.stream.number);
    if (the_mode == &mode_record) {
        for (int i = 1; i <= 2; i++) files->out_fds[i][0] = o.outs[i];
        outputs_after_exec(files);
        stream_attach_writer(rt_fd + 1, &o.stream);
        stream_close_other(o.old_ring);
    }

    static struct loading l;
    l.o = &o;
    l.rt_fd = rt_fd;
    const int keep[] = {rt_fd, o.exec_fd, 2};
    if (!o.crowded || apart_call(load_program, &l, keep, ARRAY_LEN(keep)) < 0)
        load_program(&l);
    else
        SYS(close, o.exec_fd);
    show_as_program(&l.r);
    t->tb->pc = l.r.entry;
    t->tb->gpr[RSP] = l.r.sp;
    t->tb->rflags = 0x202;
    if (the_mode == &mode_record) record_start(t, &l.r, o.parent);
    signals_apply_mask(t);
    t->kicked = the_mode != &mode_replay; /* a kick may have come while the program before executed this one */
    if (o.traced) traced_after_exec(t);
    if (o.crash) crash_on_purpose();
    engine_run(t->tb);
}
