/* State of the runtime that outlives an execve, and what the command line asked for. */
#ifndef REPRISE_RUNTIME_H
#define REPRISE_RUNTIME_H

#include "inproc/types.h"

struct runtime {
    int rt_fd;            /* this runtime's own file, for execve; out of the program's reach */
    bool use_cache;
    char cache_dir[512];  /* of kept translations */
    char options[1024];   /* as given, handed on through execve */
    uint64_t seed;
    uint64_t *kernel_auxv;
    char exe_path[4096];  /* the program: what /proc/self/exe must say */
};

extern struct runtime the_runtime;

#endif
