/* Loader: finds the ELF file to run behind any `#!` lines, checks it, and maps it and its interpreter.
 * Invariant: nothing is mapped before every PT_LOAD of the file has been checked, and MAP_FIXED is only used inside a range
 * that aspace_place() gave or that was claimed with MAP_FIXED_NOREPLACE.
 * Errors are those of the kernel; where the kernel would kill the process after its point of no return, loader_check()
 * says 0 and loader_load() fails. */
#include "sphere/loader.h"

#include <asm/stat.h>
#include <asm/statfs.h>
#include <linux/elf.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"

#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif
#define ST_NOEXEC 8
#define FILE_TYPE 0170000 /* <linux/stat.h> hides its names where libc is around, as in the unit tests */
#define TYPE_REGULAR 0100000
#define TYPE_FOLDER 0040000
#define X_OK 1

#define ADDRESS_LIMIT 0x7ffffffff000ull /* TASK_SIZE */
#define PHDR_MAX (65536 / sizeof(Elf64_Phdr))
#define ALIGN_MAX (1ull << 40) /* larger ones never find a place */
#define INTERP_PATH_MAX 4096
#define SCRIPT_LEVELS 6 /* five may lead to a program; a sixth is read and then refused */

_Static_assert(sizeof(Elf64_Phdr) == 56, "ELF64 program header");

struct elf {
    int fd; /* -1: there is none */
    uint64_t size;
    Elf64_Ehdr head;
    Elf64_Phdr ph[PHDR_MAX];
};

struct span {
    gaddr start, end;
};

/* All that one run of the loader needs; too large for the stack. */
struct job {
    bool check; /* permissions, too */
    char *why;
    size_t why_cap;
    struct script_line script[SCRIPT_LEVELS];
    int scripts;
    struct elf program, interp;
    char interp_path[INTERP_PATH_MAX];
    struct span spans[PHDR_MAX];
};

static struct job *job_new(bool check, char *why, size_t why_cap) {
    long at = SYS(mmap, NULL, sizeof(struct job), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_failed(at)) return NULL;
    struct job *j = (struct job *)at;
    j->check = check;
    j->why = why;
    j->why_cap = why_cap;
    j->program.fd = j->interp.fd = -1;
    return j;
}

static void job_free(struct job *j) {
    if (j->interp.fd >= 0) SYS(close, j->interp.fd);
    SYS(munmap, j, sizeof *j);
}

static long refuse(struct job *j, int err, const char *f, ...) __attribute__((format(printf, 3, 4)));
static long refuse(struct job *j, int err, const char *f, ...) {
    if (j->why && j->why_cap) {
        va_list ap;
        va_start(ap, f);
        fmt_into_v(j->why, j->why_cap, f, ap);
        va_end(ap);
    }
    return -err;
}

/* Bytes read, fewer than n only at the end of the file; -errno. */
static long read_at(int fd, void *to, size_t n, uint64_t offset) {
    size_t done = 0;
    while (done < n) {
        long got = SYS(pread64, fd, (char *)to + done, n - done, offset + done);
        if (got == -EINTR) continue;
        if (got < 0) return got;
        if (got == 0) break;
        done += (size_t)got;
    }
    return (long)done;
}

/* --- permissions --- */

/* Whose fault a message speaks of. */
static const char the_program[] = "", the_interp[] = "ELF interpreter: ";

static bool mode_allows(const struct stat *st, int fd) {
    long ret = SYS(faccessat2, fd, "", X_OK, AT_EMPTY_PATH | AT_EACCESS);
    if (ret == -EACCES) return false;
    return ret == 0 || (st->st_mode & 0111); /* before Linux 5.8: the mode bits must do */
}

/* Writers and security modules. Older kernels say EINVAL to the flag. */
long loader_ask_kernel(int fd) {
    char *argv[] = {(char *)"", NULL}, *envp[] = {NULL};
    long ret = SYS(execveat, fd, "", argv, envp, AT_EMPTY_PATH | AT_EXECVE_CHECK);
    return ret == -ETXTBSY || ret == -EACCES ? ret : 0;
}

/* What execve checks before it looks into the file. */
static long may_execute(struct job *j, int fd, const char *what) {
    struct stat st;
    long ret = SYS(fstat, fd, &st);
    if (ret < 0) return refuse(j, (int)-ret, "%scannot be examined", what);
    if ((st.st_mode & FILE_TYPE) == TYPE_FOLDER) return refuse(j, EACCES, "%sis a directory", what);
    if ((st.st_mode & FILE_TYPE) != TYPE_REGULAR) return refuse(j, EACCES, "%snot a regular file", what);
    if (!j->check) return 0;

    struct statfs fs;
    if (SYS(fstatfs, fd, &fs) == 0 && (fs.f_flags & ST_NOEXEC))
        return refuse(j, EACCES, "%son a file system mounted noexec", what);
    if (!mode_allows(&st, fd)) return refuse(j, EACCES, "%sno execute permission", what);

    ret = loader_ask_kernel(fd);
    if (ret == -ETXTBSY) return refuse(j, ETXTBSY, "%sopen for writing", what);
    if (ret == -EACCES) return refuse(j, EACCES, "%smay not be executed", what);
    return 0;
}

/* Opens a file that a `#!` line or PT_INTERP names. fd or -errno. */
static long open_named(struct job *j, const char *path, const char *what) {
    struct stat st;
    if (!*path) path = "."; /* execve takes an empty name for the current directory and refuses that */
    long ret = SYS(newfstatat, AT_FDCWD, path, &st, 0);
    if (ret < 0)
        return refuse(j, (int)-ret, ret == -ENOENT ? "%s%s does not exist" : "%s%s cannot be reached", what, path);
    /* Opening a device or a fifo would have effects; the kernel refuses them as well. */
    if ((st.st_mode & FILE_TYPE) != TYPE_REGULAR) return refuse(j, EACCES, "%s%s is not a regular file", what, path);
    ret = SYS(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
    if (ret < 0) return refuse(j, (int)-ret, "%s%s cannot be opened for reading", what, path);
    long ok = may_execute(j, (int)ret, what);
    if (ok == 0) return ret;
    SYS(close, ret);
    return ok;
}

/* --- headers --- */

static const struct {
    uint16_t machine;
    const char *name;
} machines[] = {
    {EM_ARM, "arm"},         {EM_AARCH64, "aarch64"}, {EM_RISCV, "riscv"}, {EM_PPC, "ppc"},
    {EM_PPC64, "ppc64"},     {EM_S390, "s390x"},      {EM_MIPS, "mips"},   {EM_SPARC, "sparc"},
    {EM_SPARCV9, "sparc64"}, {EM_IA_64, "ia64"},      {EM_ALPHA, "alpha"}, {258, "loongarch"},
};

static long refuse_machine(struct job *j, const Elf64_Ehdr *h, int err, const char *what) {
    uint16_t machine = h->e_machine;
    if (h->e_ident[EI_DATA] == ELFDATA2MSB) machine = (uint16_t)(machine << 8 | machine >> 8);
    if (machine == EM_386) return refuse(j, err, "%s32-bit program", what);
    for (size_t i = 0; i < ARRAY_LEN(machines); i++)
        if (machines[i].machine == machine) return refuse(j, err, "%sbuilt for %s", what, machines[i].name);
    return refuse(j, err, "%sbuilt for another machine (number %u)", what, machine);
}

static long check_type(struct job *j, const Elf64_Ehdr *h, int err, const char *what) {
    switch (h->e_type) {
    case ET_EXEC:
    case ET_DYN: return 0;
    case ET_REL: return refuse(j, err, "%sobject file, not linked", what);
    case ET_CORE: return refuse(j, err, "%score file", what);
    default: return refuse(j, err, "%sunknown ELF type (%u)", what, h->e_type);
    }
}

/* Reads the program headers of e, whose ELF header is there. e_ident beyond the magic does not matter to the kernel. */
static long read_headers(struct job *j, struct elf *e, int err, const char *what) {
    const Elf64_Ehdr *h = &e->head;
    if (h->e_machine != EM_X86_64) return refuse_machine(j, h, err, what);
    if (h->e_phentsize != sizeof(Elf64_Phdr)) {
        if (h->e_ident[EI_CLASS] == ELFCLASS32) return refuse(j, err, "%s32-bit program", what);
        return refuse(j, err, "%sprogram headers of a wrong size (%u)", what, h->e_phentsize);
    }
    if (h->e_phnum == 0) return refuse(j, err, "%sno program headers", what);
    if (h->e_phnum > PHDR_MAX) return refuse(j, err, "%stoo many program headers (%u)", what, h->e_phnum);
    long size = (long)(h->e_phnum * sizeof(Elf64_Phdr));
    if (read_at(e->fd, e->ph, (size_t)size, h->e_phoff) != size)
        return refuse(j, err, "%sprogram headers are truncated", what);

    struct stat st;
    long ret = SYS(fstat, e->fd, &st);
    if (ret < 0) return ret;
    e->size = (uint64_t)st.st_size;
    return 0;
}

static long find_interp(struct job *j) {
    const struct elf *e = &j->program;
    const Elf64_Phdr *p = e->ph, *end = e->ph + e->head.e_phnum;
    while (p < end && p->p_type != PT_INTERP) p++;
    if (p == end) return 0;

    if (p->p_filesz < 2 || p->p_filesz > INTERP_PATH_MAX)
        return refuse(j, ENOEXEC, "the ELF interpreter's path has an impossible length");
    long got = read_at(e->fd, j->interp_path, p->p_filesz, p->p_offset);
    if (got < 0 || (uint64_t)got != p->p_filesz)
        return refuse(j, got < 0 ? (int)-got : EIO, "the ELF interpreter's path is truncated");
    if (j->interp_path[p->p_filesz - 1] != '\0')
        return refuse(j, ENOEXEC, "the ELF interpreter's path is not terminated");

    long fd = open_named(j, j->interp_path, the_interp);
    if (fd < 0) return fd;
    struct elf *i = &j->interp;
    i->fd = (int)fd;
    got = read_at(i->fd, &i->head, sizeof i->head, 0);
    if (got != sizeof i->head) return refuse(j, got < 0 ? (int)-got : EIO, "ELF interpreter: truncated");
    if (memcmp(i->head.e_ident, ELFMAG, SELFMAG) != 0) return refuse(j, ELIBBAD, "ELF interpreter: not an ELF file");
    return read_headers(j, i, ELIBBAD, the_interp);
}

/* Follows `#!` lines from fd to an ELF file and reads the headers of that and of its interpreter.
 * Sets j->program.fd, which the caller closes if it is not fd. */
static long resolve(struct job *j, int fd) {
    struct elf *e = &j->program;
    e->fd = fd;
    struct script_line *s;
    for (;;) {
        if (j->scripts == SCRIPT_LEVELS) return refuse(j, ELOOP, "too many #! interpreters in a row");
        s = &j->script[j->scripts];
        memset(s->text, 0, sizeof s->text);
        long got = read_at(e->fd, s->text, sizeof s->text, 0);
        if (got < 0) return refuse(j, (int)-got, "cannot be read");
        if (got == 0) return refuse(j, ENOEXEC, "empty file");
        if (s->text[0] != '#' || s->text[1] != '!') break;

        if (script_split(s) < 0) return refuse(j, ENOEXEC, "the #! line names no interpreter, or too long a one");
        j->scripts++;
        long next = open_named(j, s->interp, "#! interpreter: ");
        if (next < 0) return next;
        if (e->fd != fd) SYS(close, e->fd);
        e->fd = (int)next;
    }
    memcpy(&e->head, s->text, sizeof e->head);
    if (memcmp(e->head.e_ident, ELFMAG, SELFMAG) != 0) return refuse(j, ENOEXEC, "not an ELF file and no #! line");
    long ret = check_type(j, &e->head, ENOEXEC, the_program);
    if (ret == 0) ret = read_headers(j, e, ENOEXEC, the_program);
    if (ret == 0) ret = find_interp(j);
    return ret;
}

long loader_check(int fd, char *why, size_t why_cap) {
    if (why && why_cap) why[0] = '\0';
    struct job *j = job_new(true, why, why_cap);
    if (!j) return -ENOMEM;
    long ret = may_execute(j, fd, the_program);
    if (ret == 0) ret = resolve(j, fd);
    if (j->program.fd >= 0 && j->program.fd != fd) SYS(close, j->program.fd);
    job_free(j);
    return ret;
}

/* --- segments --- */

struct extent {
    gaddr start, end; /* pages that the PT_LOADs cover, unbiased */
    uint64_t align;
    size_t loads;
};

/* Checks every PT_LOAD; afterwards sums of their fields cannot wrap. */
static long measure(struct job *j, const struct elf *e, const char *what, struct extent *x) {
    *x = (struct extent){.start = ~0ull, .align = PAGE_SIZE};
    for (unsigned i = 0; i < e->head.e_phnum; i++) {
        const Elf64_Phdr *p = &e->ph[i];
        if (p->p_type != PT_LOAD) continue;
        if (p->p_filesz > p->p_memsz)
            return refuse(j, EINVAL, "%ssegment %u is larger in the file than in memory", what, i);
        if (p->p_vaddr >= ADDRESS_LIMIT || p->p_memsz > ADDRESS_LIMIT - p->p_vaddr)
            return refuse(j, EINVAL, "%ssegment %u lies outside the address space", what, i);
        if (p->p_filesz && ((p->p_offset ^ p->p_vaddr) & ~PAGE_MASK))
            return refuse(j, EINVAL, "%sfile offset and address of segment %u do not fit together", what, i);
        if (p->p_filesz && PAGE_DOWN(p->p_offset) > INT64_MAX - PAGE_SIZE - PAGE_UP(p->p_filesz))
            return refuse(j, EOVERFLOW, "%ssegment %u lies outside any file", what, i);
        x->start = MIN(x->start, PAGE_DOWN(p->p_vaddr));
        x->end = MAX(x->end, PAGE_UP(p->p_vaddr + p->p_memsz));
        if (p->p_align && (p->p_align & (p->p_align - 1)) == 0) x->align = MAX(x->align, p->p_align);
        x->loads++;
    }
    return 0;
}

/* The pages of all segments as disjoint, sorted spans; returns how many. */
static size_t collect_spans(struct span *spans, const struct elf *e) {
    size_t n = 0;
    for (unsigned i = 0; i < e->head.e_phnum; i++) {
        const Elf64_Phdr *p = &e->ph[i];
        if (p->p_type != PT_LOAD || p->p_memsz == 0) continue;
        struct span s = {PAGE_DOWN(p->p_vaddr), PAGE_UP(p->p_vaddr + p->p_memsz)};
        size_t at = n++;
        for (; at > 0 && spans[at - 1].start > s.start; at--) spans[at] = spans[at - 1];
        spans[at] = s;
    }
    size_t merged = 0;
    for (size_t i = 0; i < n; i++) {
        if (merged && spans[i].start <= spans[merged - 1].end)
            spans[merged - 1].end = MAX(spans[merged - 1].end, spans[i].end);
        else
            spans[merged++] = spans[i];
    }
    return merged;
}

/* Reserves the fixed addresses of a non-PIE file; its segments may overlap one another, but nothing else. */
static long claim(struct job *j, const struct elf *e, const char *what) {
    size_t n = collect_spans(j->spans, e);
    for (size_t i = 0; i < n; i++) {
        struct span s = j->spans[i];
        long at = aspace_mmap(s.start, s.end - s.start, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (at != (long)s.start)
            return refuse(j, ENOMEM, "%sneeds the addresses 0x%lx-0x%lx, which are not free", what, s.start, s.end);
    }
    return 0;
}

/* Zeroes the file's bytes behind the segment in its last page. */
static long clear_tail(struct job *j, const struct elf *e, const Elf64_Phdr *p, gaddr bias, const char *what) {
    gaddr from = bias + p->p_vaddr + p->p_filesz;
    if (from == PAGE_UP(from) || !(p->p_flags & PF_W)) return 0; /* the kernel leaves them in read-only segments */
    if (PAGE_DOWN(p->p_offset + p->p_filesz) >= e->size)
        return refuse(j, EFAULT, "%struncated: its data ends beyond the end of the file", what);
    memset((void *)from, 0, PAGE_UP(from) - from);
    return 0;
}

static long map_segment(struct job *j, const struct elf *e, const Elf64_Phdr *p, gaddr bias, const char *what) {
    int prot = (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
               (p->p_flags & PF_X ? PROT_EXEC : 0);
    gaddr start = PAGE_DOWN(bias + p->p_vaddr), file_end = start;
    if (p->p_filesz) {
        file_end = PAGE_UP(bias + p->p_vaddr + p->p_filesz);
        long at = aspace_mmap(start, file_end - start, prot, MAP_PRIVATE | MAP_FIXED, e->fd, PAGE_DOWN(p->p_offset));
        if (sys_failed(at)) return refuse(j, (int)-at, "%sa segment cannot be mapped", what);
    }
    if (p->p_memsz == p->p_filesz) return 0;
    if (p->p_filesz) {
        long ret = clear_tail(j, e, p, bias, what);
        if (ret < 0) return ret;
    }
    gaddr end = PAGE_UP(bias + p->p_vaddr + p->p_memsz);
    if (end == file_end) return 0;
    /* Writable whatever the segment says, as in the kernel. */
    prot = PROT_READ | PROT_WRITE | (prot & PROT_EXEC);
    long at = aspace_mmap(file_end, end - file_end, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (sys_failed(at)) return refuse(j, (int)-at, "%sno room for %lu bytes of zeroed data", what, end - file_end);
    return 0;
}

/* Maps a file's segments; *bias is what to add to its addresses. */
static long load_image(struct job *j, const struct elf *e, const char *what, gaddr *bias) {
    struct extent x;
    *bias = 0;
    long ret = measure(j, e, what, &x);
    if (ret < 0 || x.loads == 0) return ret;
    if (e->head.e_type == ET_EXEC) {
        ret = claim(j, e, what);
        if (ret < 0) return ret;
    } else {
        if (x.start == x.end) return refuse(j, EINVAL, "%sall segments are empty", what);
        gaddr at = x.align > ALIGN_MAX ? 0 : aspace_place(x.end - x.start, x.align, e->fd);
        if (!at) return refuse(j, ENOMEM, "%sno room for %lu bytes", what, x.end - x.start);
        *bias = at - x.start;
    }
    for (unsigned i = 0; i < e->head.e_phnum; i++) {
        if (e->ph[i].p_type != PT_LOAD) continue;
        ret = map_segment(j, e, &e->ph[i], *bias, what);
        if (ret < 0) return ret;
    }
    return 0;
}

/* Where the program's parts are, for auxv and PR_SET_MM_MAP. */
static void describe(const struct elf *e, gaddr bias, struct load_result *out, gaddr *phdr) {
    gaddr code_start = ~0ull, code_end = 0, data_start = 0, data_end = 0, brk = 0;
    *phdr = bias; /* if no segment holds them, as in the kernel */
    for (unsigned i = 0; i < e->head.e_phnum; i++) {
        const Elf64_Phdr *p = &e->ph[i];
        if (p->p_type != PT_LOAD) continue;
        uint64_t phoff = e->head.e_phoff;
        if (p->p_offset <= phoff && phoff - p->p_offset < p->p_filesz)
            *phdr = bias + p->p_vaddr + (phoff - p->p_offset);
        if (p->p_flags & PF_X) {
            code_start = MIN(code_start, p->p_vaddr);
            code_end = MAX(code_end, p->p_vaddr + p->p_filesz);
        }
        data_start = MAX(data_start, p->p_vaddr);
        data_end = MAX(data_end, p->p_vaddr + p->p_filesz);
        brk = MAX(brk, p->p_vaddr + p->p_memsz);
    }
    out->code_start = bias + code_start;
    out->code_end = bias + code_end;
    out->data_start = bias + data_start;
    out->data_end = bias + data_end;
    out->brk_start = PAGE_UP(bias + brk);
}

static bool wants_executable_stack(const struct elf *e) {
    bool executable = false; /* the last one counts */
    for (unsigned i = 0; i < e->head.e_phnum; i++)
        if (e->ph[i].p_type == PT_GNU_STACK) executable = e->ph[i].p_flags & PF_X;
    return executable;
}

/* --- the whole --- */

/* The strings that `#!` lines put in front of argv[1], innermost interpreter first. */
static size_t script_arguments(const struct job *j, const char *path, const char **before) {
    size_t n = 0;
    for (int i = j->scripts - 1; i >= 0; i--) {
        before[n++] = j->script[i].interp;
        if (j->script[i].arg) before[n++] = j->script[i].arg;
    }
    if (j->scripts) before[n++] = path;
    return n;
}

static long make_stack(struct job *j, const struct exec_image *image, struct stack_plan *plan,
                       struct load_result *out) {
    const char *before[2 * SCRIPT_LEVELS + 1];
    plan->path = image->path;
    plan->before = before;
    plan->before_count = script_arguments(j, image->path, before);
    plan->argv = image->argv;
    plan->envp = image->envp;
    plan->executable = wants_executable_stack(&j->program);
    if (j->scripts && plan->argv[0]) plan->argv++;                        /* the path took its place */
    if (!j->scripts && !plan->argv[0]) before[plan->before_count++] = ""; /* the kernel gives everyone an argv[0] */
    long ret = stack_build(plan, out);
    return ret < 0 ? refuse(j, (int)-ret, "no room for the stack") : 0;
}

static void set_names(const struct elf *e, const char *path, struct load_result *out) {
    char link[32];
    fmt_into(link, sizeof link, "/proc/self/fd/%d", e->fd);
    long n = SYS(readlinkat, AT_FDCWD, link, out->exe_path, sizeof out->exe_path - 1);
    out->exe_path[n < 0 ? 0 : n] = '\0';

    const char *slash = strrchr(path, '/');
    fmt_into(out->comm, sizeof out->comm, "%s", slash ? slash + 1 : path);
}

static long load(struct job *j, const struct exec_image *image, struct stack_plan *plan, struct load_result *out) {
    gaddr bias, interp_bias = 0;
    const struct elf *e = &j->program;
    long ret = load_image(j, e, the_program, &bias);
    if (ret < 0) return ret;
    describe(e, bias, out, &plan->phdr);
    plan->phnum = e->head.e_phnum;
    plan->entry = out->entry = bias + e->head.e_entry;
    aspace_set_brk(out->brk_start);

    if (j->interp.fd >= 0) {
        ret = check_type(j, &j->interp.head, EINVAL, the_interp);
        if (ret == 0) ret = load_image(j, &j->interp, the_interp, &interp_bias);
        if (ret < 0) return ret;
        plan->base = interp_bias;
        out->entry = interp_bias + j->interp.head.e_entry;
    }
    if (out->entry >= ADDRESS_LIMIT) return refuse(j, EINVAL, "the entry point lies outside the address space");
    return make_stack(j, image, plan, out);
}

long loader_load(const struct exec_image *image, const uint64_t *kernel_auxv, gaddr sysinfo_ehdr,
                 struct load_result *out) {
    memset(out, 0, sizeof *out);
    out->exe_fd = -1;
    struct job *j = job_new(false, out->why, sizeof out->why);
    if (!j) return -ENOMEM;
    struct stack_plan plan = {.kernel_auxv = kernel_auxv, .sysinfo_ehdr = sysinfo_ehdr};
    long ret = may_execute(j, image->fd, the_program);
    if (ret == 0) ret = resolve(j, image->fd);
    if (ret == 0) ret = load(j, image, &plan, out);
    if (ret == 0) {
        out->exe_fd = j->program.fd;
        set_names(&j->program, image->path, out);
    } else if (j->program.fd >= 0 && j->program.fd != image->fd) {
        SYS(close, j->program.fd);
    }
    job_free(j);
    return ret;
}
