/* Loader: puts a program into the address space the way the kernel's execve would.
 * ELF files and scripts are hostile input: every header field is checked, nothing outside the guest is touched. */
#ifndef REPRISE_LOADER_H
#define REPRISE_LOADER_H

#include "inproc/types.h"

struct exec_image {
    int fd;              /* the file to run, open for reading */
    const char *path;    /* what execve was given: AT_EXECFN, /proc/self/exe after resolution */
    char **argv, **envp; /* NULL-terminated */
};

struct load_result {
    gaddr entry; /* first guest pc: the interpreter's entry, or the program's */
    gaddr sp;    /* initial rsp, argc at its top */
    gaddr arg_start, arg_end, env_start, env_end, auxv_start, auxv_end;
    gaddr code_start, code_end, data_start, data_end, brk_start, stack_start; /* for PR_SET_MM_MAP, as in the kernel */
    int exe_fd; /* the ELF that runs: image->fd itself, or for a script its interpreter (open; the caller closes it) */
    char exe_path[4096]; /* the resolved absolute path of that ELF: what readlink("/proc/self/exe") must say */
    char comm[16];       /* what prctl(PR_GET_NAME) would give */
    char why[160];       /* after a failed loader_load: one line for the user */
};

/* Whether `fd` can be executed: 0, or -errno as execve would return (EACCES, ENOEXEC, ELIBBAD, EINVAL ...). Follows `#!`
 * lines. Run by execve *before* the point of no return: a failed exec must return to the program. `why` (may be NULL)
 * receives one line for the user ("32-bit ELF", "foreign architecture", "truncated program headers", ...). */
long loader_check(int fd, char *why, size_t why_cap);

#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000 /* Linux 6.14 */
#endif
/* What only the kernel knows about executing a file: -ETXTBSY or -EACCES. 0: it may be, or the kernel is older than the question. */
long loader_ask_kernel(int fd);

/* Loads it: maps program and interpreter, makes stack and auxv. 0 or -errno. The address space is empty of guest mappings.
 * sysinfo_ehdr: address of the vDSO that the guest shall see, or 0. kernel_auxv: the auxv that the kernel gave the runtime
 * (AT_HWCAP, AT_CLKTCK, AT_PLATFORM, AT_UID... are taken from there). */
long loader_load(const struct exec_image *image, const uint64_t *kernel_auxv, gaddr sysinfo_ehdr,
                 struct load_result *out);

/* --- parts of the loader, in files of their own --- */

#define SCRIPT_LINE 256 /* the kernel looks at this much of a file */

struct script_line {
    char text[SCRIPT_LINE]; /* the file's first bytes, zero padded; script_split() cuts it into strings */
    const char *interp;     /* the interpreter's path */
    const char *arg;        /* the one optional argument, or NULL */
};

/* Splits a `#!` line as the kernel does: 0, or -ENOEXEC when it names no interpreter or may be cut off in its name. */
long script_split(struct script_line *s);

struct stack_plan {
    const char *path;          /* AT_EXECFN */
    const char *const *before; /* strings in front of argv: what `#!` lines put there */
    size_t before_count;
    char **argv, **envp;
    bool executable;         /* PT_GNU_STACK asks for it */
    gaddr sysinfo_ehdr;      /* 0: no AT_SYSINFO_EHDR */
    gaddr phdr, base, entry; /* AT_PHDR, AT_BASE, AT_ENTRY */
    uint64_t phnum;
    const uint64_t *kernel_auxv;
};

/* Maps the stack and fills it; sets sp, stack_start and the arg_*, env_*, auxv_* fields. 0 or -errno. */
long stack_build(const struct stack_plan *plan, struct load_result *out);

#endif
