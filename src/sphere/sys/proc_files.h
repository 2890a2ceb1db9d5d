/* What /proc says about processes that run under Reprise: the program's view, without anything of the runtime. */
#ifndef REPRISE_PROC_FILES_H
#define REPRISE_PROC_FILES_H

#include "inproc/types.h"

enum proc_what {
    PROC_EXE, /* a link; the rest are plain files or folders */
    PROC_MAPS,
    PROC_SMAPS,
    PROC_NUMA_MAPS,
    PROC_STATUS,
    PROC_STAT,
    PROC_CMDLINE,
    PROC_ENVIRON,
    PROC_AUXV,
    PROC_FOLDER_FD, /* fd, fdinfo */
    PROC_FOLDER_MAPS,
    PROC_FOLDER_TASK,
    PROC_MAP_LINK, /* map_files/LO-HI of this process, as its program may call it */
    PROC_OWN_FD,   /* the runtime's own descriptor: does not exist */
};

struct proc_file {
    enum proc_what what;
    int pid, tid; /* as that /proc numbers them */
    bool self;    /* this process; otherwise another one under Reprise */
    gaddr lo, hi; /* PROC_MAP_LINK */
};

/* Whether the path, not following a link at its end, leads to such a file. Cheap for paths that obviously do not. */
bool proc_find(int dirfd, const char *path, struct proc_file *out);
/* The same for an open descriptor (O_PATH of a link), and for folders to be listed. */
bool proc_find_fd(int fd, struct proc_file *out);
bool proc_folder(int fd, struct proc_file *out);
/* Whether an entry of such a folder must not be seen. */
bool proc_hides(const struct proc_file *folder, const char *name);

/* How many threads of the process are the runtime's own. */
uint64_t proc_services(const struct proc_file *f);

/* What the kernel calls a PROC_MAP_LINK that the program calls `path`. False: there is none. */
bool proc_map_link(const struct proc_file *f, const char *path, char *out, size_t cap);
/* getdents() and getdents64() of map_files of this process, at most cap bytes: what `records` has then, or -errno. */
long proc_list_links(int fd, bool wide, char *records, size_t cap);

/* Where /proc/PID/exe leads: the length of the path, or -errno. */
long proc_exe_path(const struct proc_file *f, char *out, size_t cap);
/* Opens what the link leads to, even if it has no path any more. */
long proc_exe_open(const struct proc_file *f, uint64_t flags);

/* Opens a file of ours in place of the kernel's; PROC_AS_IS: the kernel's own will do. */
#define PROC_AS_IS (-4097l)
long proc_open(const struct proc_file *f, int dirfd, const char *path, uint64_t flags);

#endif
