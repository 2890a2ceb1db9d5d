/* execve: the runtime executes itself again, with the program's file open and its arguments behind its own.
 * No path is needed for that, and everything that can fail is checked first: a failed exec must return to the program. */
#include <linux/elf.h>
#include <linux/fcntl.h>

#include "engine/kept.h"
#include "engine/kept_mark.h"
#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/apart.h"
#include "sphere/cpuid_answers.h"
#include "sphere/hurry.h"
#include "sphere/loader.h"
#include "sphere/mode.h"
#include "sphere/runtime.h"
#include "sphere/signals.h"
#include "sphere/sys/proc_files.h"
#include "sphere/sys/special.h"
#include "sphere/vdso.h"

#define ARGUMENTS_MAX 1000000
#define MDWE_NO_INHERIT 2u

struct exec {
    int dirfd, flags; /* as the program gave them */
    gaddr path;
    int fd;          /* the file; -1: it has to be opened again by name */
    bool by_fd;      /* name was made from dirfd */
    bool crowded;    /* the descriptor table is too full for the loader */
    bool unreadable; /* may be executed, not read: fd is O_PATH */
    long ret;        /* what prepare() found */
    char name[4096]; /* what the new program is told: AT_EXECFN */
};

/* ---- opening ---- */

/* Reads are enough for us; execute permission is checked by loader_check. */
static long open_readable(struct exec *e, int dirfd, const char *path, uint64_t extra) {
    long fd = SYS(openat, dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | extra);
    if (fd != -EACCES) return fd;
    long path_fd = SYS(openat, dirfd, path, O_PATH | O_CLOEXEC | extra);
    if (path_fd < 0) return path_fd;
    if (SYS(faccessat2, path_fd, "", 1 /* X_OK */, AT_EMPTY_PATH | AT_EACCESS) == 0 &&
        loader_ask_kernel((int)path_fd) == 0) {
        e->unreadable = true;
        return path_fd;
    }
    SYS(close, path_fd);
    return -EACCES;
}

/* What descriptor `fd` stands for, to be read by us: the program may have it open in some other way. */
static long open_again(struct exec *e, int fd) {
    long mode = SYS(fcntl, fd, F_GETFL);
    if (mode < 0) return mode;
    char self[32];
    fmt_into(self, sizeof self, "/proc/self/fd/%d", fd);
    if ((mode & O_PATH) || (mode & 3) == O_WRONLY) return open_readable(e, AT_FDCWD, self, 0);
    return SYS(fcntl, fd, F_DUPFD_CLOEXEC, 0);
}

static long open_named(struct exec *e) {
    struct proc_file f;
    if (proc_find(e->dirfd, e->name, &f)) {
        if (f.what == PROC_OWN_FD) return -ENOENT;
        if (f.what == PROC_EXE && !(e->flags & AT_SYMLINK_NOFOLLOW)) return proc_exe_open(&f, O_RDONLY | O_CLOEXEC);
    }
    return open_readable(e, e->dirfd, e->name, e->flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
}

static long exec_open(struct exec *e) {
    long n = guest_read_string(e->name, e->path, sizeof e->name);
    if (n < 0) return n;
    if (e->flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) return -EINVAL;
    if (n == 0 && !(e->flags & AT_EMPTY_PATH)) return -ENOENT;
    e->by_fd = e->dirfd != AT_FDCWD && e->name[0] != '/';
    if (n == 0) {
        fmt_into(e->name, sizeof e->name, "/dev/fd/%d", e->dirfd);
        return open_again(e, e->dirfd);
    }
    long fd = open_named(e);
    if (fd >= 0 && e->by_fd) {
        char relative[4096];
        memcpy(relative, e->name, sizeof relative);
        if (fmt_into(e->name, sizeof e->name, "/dev/fd/%d/%s", e->dirfd, relative) >= sizeof e->name) {
            SYS(close, fd);
            return -ENAMETOOLONG;
        }
    }
    return fd;
}

static bool dirfd_is_closed(const struct exec *e) {
    return e->by_fd && (SYS(fcntl, e->dirfd, F_GETFD) & 1 /* FD_CLOEXEC */);
}

/* An interpreter could not open a script through a descriptor that is closed by then. */
static bool is_lost_script(const struct exec *e) {
    char two[2];
    return dirfd_is_closed(e) && SYS(pread64, e->fd, two, 2, 0) == 2 && two[0] == '#' && two[1] == '!';
}

static void let_go(struct exec *e) {
    if (e->fd >= 0) SYS(close, e->fd);
    e->fd = -1;
}

/* Opens and checks the file; 0, or -errno as execve gives. */
static long prepare(struct exec *e) {
    long fd = exec_open(e);
    if (fd < 0) return fd;
    e->fd = (int)fd;
    long ret = e->unreadable ? 0 : loader_check(e->fd, NULL, 0);
    if (ret == 0 && !e->unreadable && is_lost_script(e)) ret = -ENOENT;
    if (ret < 0) let_go(e);
    return ret;
}

static void prepare_apart(void *arg) {
    struct exec *e = arg;
    e->ret = prepare(e);
    let_go(e);
}

/* The same with a full table. One free number may be left for the file itself; otherwise its name must do. */
static long prepare_crowded(struct exec *e) {
    const int keep[] = {e->dirfd, fd_own()};
    e->crowded = true;
    if (apart_call(prepare_apart, e, keep, ARRAY_LEN(keep)) < 0) return -EMFILE;
    if (e->ret < 0) return e->ret;
    e->fd = (int)exec_open(e);
    if (e->fd < 0 && (e->unreadable || dirfd_is_closed(e))) return -EMFILE;
    return 0;
}

/* ---- arguments ---- */

static long count_vector(gaddr v) {
    if (!v) return 0;
    for (long n = 0;; n++) {
        uint64_t p;
        if (!guest_read(&p, v + 8ul * (uint64_t)n, 8)) return -EFAULT;
        if (!p) return n;
        if (n > ARGUMENTS_MAX) return -E2BIG;
    }
}

struct vector {
    uint64_t *v; /* followed by the texts of seccomp filters */
    size_t bytes;
};

/* reprise-rt --start OPTIONS NAME [FILTER...] -- ARGV... */
static long make_vector(struct tblock *t, const struct exec *e, const char *options, gaddr argv, struct vector *out) {
    const struct seccomp *s = &t->thread->seccomp;
    long n = count_vector(argv);
    if (n < 0) return n;
    size_t words = (size_t)n + (size_t)s->count + 8, text = 0;
    for (int i = 0; i < s->count; i++) text += seccomp_text_size(seccomp_nth(s, i));
    out->bytes = words * 8 + text;
    uint64_t *v = out->v = arena_pages(out->bytes);
    *v++ = (uint64_t) "reprise-rt";
    *v++ = (uint64_t) "--start";
    *v++ = (uint64_t)options;
    *v++ = (uint64_t)e->name;
    char *filter = (char *)(out->v + words);
    for (int i = 0; i < s->count; i++) {
        const struct seccomp_filter *f = seccomp_nth(s, i);
        seccomp_to_text(f, filter);
        *v++ = (uint64_t)filter;
        filter += seccomp_text_size(f);
    }
    *v++ = (uint64_t) "--";
    if (n == 0) /* the kernel gives everyone an argv[0] */
        *v = (uint64_t) "";
    else if (!guest_read(v, argv, 8ul * (uint64_t)n))
        return -EFAULT;
    return 0;
}

/* ---- execution ---- */

/* `reprise run` inside of `reprise run`: two runtimes, of whatever build, cannot share an address space, and the inner one does
 * the same work. Nothing else is linked to this place. */
static bool is_runtime(int fd) {
    Elf64_Ehdr h;
    return SYS(pread64, fd, &h, sizeof h, 0) == sizeof h && h.e_type == ET_EXEC && h.e_entry >= LAYOUT_RT &&
           h.e_entry < LAYOUT_CKPT;
}

static void fd_own_cloexec(bool on) {
    for (uint32_t i = 0; i < the_runtime.own_fds; i++) SYS(fcntl, fd_own() + (int)i, F_SETFD, on);
}

long exec_fd(int fd, gaddr argv, gaddr envp) {
    char name[32];
    long ret = SYS(execveat, fd, "", argv, envp, AT_EMPTY_PATH);
    if (ret != -ENOENT) return ret;
    fmt_into(name, sizeof name, "/proc/self/fd/%d", fd);
    return SYS(execve, name, argv, envp);
}

/* Left to the kernel. Nothing of ours goes along. */
static long exec_natively(struct tblock *t, const struct exec *e, gaddr argv, gaddr envp) {
    fd_own_cloexec(true);
    if (the_mode->before_exec) the_mode->before_exec(t->thread, NULL, 0);
    uint64_t mask = t->thread->sigmask;
    SYS(rt_sigprocmask, 2, &mask, 0, 8);
    limits_to_kernel(&t->thread->process->limits);
    long ret = exec_fd(e->fd, argv, envp);
    fd_own_cloexec(false);
    if (the_mode->exec_failed) the_mode->exec_failed(t->thread);
    return ret;
}

static void make_options(struct thread *t, const struct exec *e, char *out, size_t cap) {
    size_t n = fmt_into(out, cap, "%s,rtfd=%d,mask=%lx", the_runtime.options, fd_own(), t->sigmask);
    if (e->fd >= 0) n += fmt_into(out + n, cap - n, ",execfd=%d", e->fd);
    if (e->crowded) n += fmt_into(out + n, cap - n, ",crowded=1");
    n += fmt_into(out + n, cap - n, ",ignored=%lx", signals_ignored(t->process));
    n += vdso_to_text(out + n, cap - n);
    if (kept_boot()) n += fmt_into(out + n, cap - n, ",boot=%lx", kept_boot());
    n += cpuid_to_text(out + n, MIN(cap - n, CPUID_TEXT));
    char limits[LIMITS_TEXT];
    limits_to_text(&t->process->limits, limits, sizeof limits);
    n += fmt_into(out + n, cap - n, ",limits=%s", limits);
    if (the_runtime.mdwe && !(the_runtime.mdwe & MDWE_NO_INHERIT))
        n += fmt_into(out + n, cap - n, ",mdwe=%u", the_runtime.mdwe);
    if (t->tsc_faults) n += fmt_into(out + n, cap - n, ",notsc=1");
    if (t->tracee) n += fmt_into(out + n, cap - n, ",traced=1");
    if (the_mode->before_exec) the_mode->before_exec(t, out + n, cap - n);
}

static long exec_runtime(struct tblock *t, struct exec *e, gaddr argv, gaddr envp) {
    char options[sizeof the_runtime.options + 640 + CPUID_TEXT];
    make_options(t->thread, e, options, sizeof options);
    struct vector args = {0};
    long ret = make_vector(t, e, options, argv, &args);
    if (ret == 0) {
        if (e->fd >= 0) SYS(fcntl, e->fd, F_SETFD, 0);
        if (!t->thread->shares_memory) kept_save();
        signals_give_back(t->thread);
        hurry_hold(); /* nobody is there to catch one until the runtime has started */
        ret = exec_fd(fd_own(), (gaddr)args.v, envp);
    }
    signals_apply_mask(t->thread);
    if (the_mode->exec_failed) the_mode->exec_failed(t->thread);
    if (args.v) arena_free_pages(args.v, args.bytes);
    return ret;
}

static long do_exec(struct tblock *t, int dirfd, gaddr path, gaddr argv, gaddr envp, int flags);

/* KEY=VALUE,... of a runtime: whether it records or replays. */
static bool has_mode(const char *options) {
    for (const char *at = options; at; at = strchr(at, ','), at += at != NULL)
        if (str_starts(at, "mode=")) return true;
    return false;
}

/* `reprise run` inside of a recording: its program is recorded, which is what was asked for. A recording or a replay inside of
 * one shares memory with its own controller, which is not to change behind the back of ours.
 * argv: reprise-rt --start OPTIONS NAME [FILTER...] -- ARGV... */
static long exec_inner(struct tblock *t, gaddr argv, gaddr envp) {
    char options[sizeof the_runtime.options], word[3];
    uint64_t p[4];
    if (count_vector(argv) < 5 || !guest_read(p, argv, sizeof p)) return -EPERM;
    if (guest_read_string(options, p[2], sizeof options) < 0 || has_mode(options)) {
        say("a recording or a replay inside of a recording is not possible");
        return -EPERM;
    }
    uint64_t next;
    for (gaddr at = argv + 4 * 8; guest_read(&next, at, 8) && next; at += 8)
        if (guest_read_string(word, next, sizeof word) == 2 && strcmp(word, "--") == 0)
            return do_exec(t, AT_FDCWD, p[3], at + 8, envp, 0);
    return -EPERM;
}

static long do_exec(struct tblock *t, int dirfd, gaddr path, gaddr argv, gaddr envp, int flags) {
    struct exec e = {.dirfd = dirfd, .flags = flags, .path = path, .fd = -1};
    long ret = prepare(&e);
    if (ret == -EMFILE) ret = prepare_crowded(&e);
    if (ret < 0) return ret;
    if (e.unreadable) say("%s: cannot be read, runs outside of Reprise", e.name);
    bool inner = e.fd >= 0 && !e.unreadable && is_runtime(e.fd);
    if (inner && the_mode->own_memory_only) {
        let_go(&e);
        return exec_inner(t, argv, envp);
    }
    bool natively = e.unreadable || inner;
    ret = natively ? exec_natively(t, &e, argv, envp) : exec_runtime(t, &e, argv, envp);
    let_go(&e);
    return ret;
}

long sys_execve(struct tblock *t, uint64_t a[6]) { return do_exec(t, AT_FDCWD, a[0], a[1], a[2], 0); }

long sys_execveat(struct tblock *t, uint64_t a[6]) {
    if (fd_is_own(a[0])) return -EBADF;
    if (a[4] & AT_EXECVE_CHECK) return gate_syscall(__NR_execveat, a); /* asks, does not execute */
    return do_exec(t, (int)a[0], a[1], a[2], a[3], (int)a[4]);
}
