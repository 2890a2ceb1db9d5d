/* State of the runtime that outlives an execve, and what the command line asked for. */
#ifndef REPRISE_RUNTIME_H
#define REPRISE_RUNTIME_H

#include "inproc/types.h"

struct runtime {
    bool use_cache;
    char cache_dir[512]; /* of kept translations */
    char options[1024];  /* as given, handed on through execve */
    uint64_t seed;
    uint32_t own_fds;      /* descriptors of ours: files.rt_fd and what follows it */
    char store[512];       /* replay: where mapped files are */
    bool verify;           /* replay: compare memory, too */
    uint64_t *kernel_auxv; /* while the program is loaded: it may put something else there */
    bool has_fsgsbase;     /* the kernel lets programs read their segment bases */
    uint32_t mdwe;         /* PR_SET_MDWE, as the program set it */
    bool has_ldt;          /* modify_ldt() has given the process segments of its own */
    char exe_path[4096];   /* the program: what /proc/self/exe must say */
    uint64_t exe_dev, exe_ino;
    gaddr exe_map; /* some address where it is mapped */
    bool shown;    /* the kernel knows the program's command line, environment and auxv, and shows them to everybody */
    gaddr arg_start, arg_end, env_start, env_end, auxv_start, auxv_end;
};

extern struct runtime the_runtime;

#endif
