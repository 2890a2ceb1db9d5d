#include "sphere/task_state.h"

#include <linux/fcntl.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"

#define STATE_FIELD 3
#define PARENT_FIELD 4
#define THREADS_FIELD 20
#define SERVICE_NAME "reprise service" /* as long as the kernel keeps them */
#define PR_SET_NAME_ 15

/* The field of /proc/TID/stat with that number; NULL: there is no such thread. */
static const char *field(int tid, int number, char *text, size_t cap) {
    char path[32];
    fmt_into(path, sizeof path, "/proc/%d/stat", tid);
    long fd = SYS(openat, AT_FDCWD, path, O_CLOEXEC);
    if (fd < 0) return NULL;
    long n = SYS(read, fd, text, cap - 1), at = n;
    SYS(close, fd);
    while (at > 0 && text[at - 1] != ')') at--; /* the name may hold anything */
    for (int k = STATE_FIELD - 1; at > 0 && at < n; at++)
        if (text[at] == ' ' && ++k == number) break;
    text[n > 0 ? n : 0] = '\0';
    return at > 0 && at + 1 < n ? text + at + 1 : NULL;
}

char task_state(int tid) {
    char text[512];
    const char *state = field(tid, STATE_FIELD, text, sizeof text);
    return state ? *state : 'X';
}

int task_parent(int pid) {
    char text[512];
    const char *at = field(pid, PARENT_FIELD, text, sizeof text);
    int parent = 0;
    for (; at && *at >= '0' && *at <= '9'; at++) parent = parent * 10 + (*at - '0');
    return parent;
}

bool task_group_is_orphaned(void) {
    long group = SYS(getpgid, 0), session = SYS(getsid, 0);
    int pid = (int)SYS(getpid);
    while ((pid = task_parent(pid)) != 0)
        if (SYS(getpgid, pid) != group) return SYS(getsid, pid) != session;
    return true;
}

/* The number behind `key` in a text like /proc/PID/status. */
static uint64_t hex_behind(const char *text, const char *key) {
    uint64_t value = 0;
    while (text && !str_starts(text, key)) text = (text = strchr(text, '\n')) ? text + 1 : NULL;
    for (text = text ? text + strlen(key) : ""; *text && *text != '\n'; text++) {
        if (*text >= '0' && *text <= '9') value = value << 4 | (uint64_t)(*text - '0');
        if (*text >= 'a' && *text <= 'f') value = value << 4 | (uint64_t)(*text - 'a' + 10);
    }
    return value;
}

uint64_t task_pending(int tid) {
    char path[32], text[2048];
    fmt_into(path, sizeof path, "/proc/%d/status", tid);
    long fd = SYS(openat, AT_FDCWD, path, O_CLOEXEC);
    if (fd < 0) return 0;
    long n = SYS(read, fd, text, sizeof text - 1);
    SYS(close, fd);
    text[n > 0 ? n : 0] = '\0';
    return hex_behind(text, "SigPnd:") | hex_behind(text, "ShdPnd:");
}

bool task_is_over(int tid) {
    char text[512], state = task_state(tid);
    if (state == 'X') return SYS(kill, tid, 0) == -ESRCH; /* or there is no /proc here */
    if (state != 'Z') return false;
    const char *threads = field(tid, THREADS_FIELD, text, sizeof text);
    return !threads || ((threads[0] == '0' || threads[0] == '1') && threads[1] == ' ');
}

bool task_is_gone(int tid) { return SYS(kill, tid, 0) == -ESRCH || (task_state(tid) == 'Z' && task_is_over(tid)); }

/* ---- services ---- */

void task_name_service(void) { SYS(prctl, PR_SET_NAME_, SERVICE_NAME, 0, 0, 0); }

bool task_is_service(int tid) {
    char path[32], name[32];
    fmt_into(path, sizeof path, "/proc/%d/comm", tid);
    long fd = SYS(openat, AT_FDCWD, path, O_CLOEXEC);
    if (fd < 0) return false;
    long n = SYS(read, fd, name, sizeof name);
    SYS(close, fd);
    return n == sizeof SERVICE_NAME && memcmp(name, SERVICE_NAME, sizeof SERVICE_NAME - 1) == 0;
}

/* The thread whose name is an entry of a folder; 0: it is none. */
static int tid_of(const char *name) {
    int tid = 0;
    for (; *name >= '0' && *name <= '9'; name++) tid = tid * 10 + (*name - '0');
    return tid;
}

uint64_t task_services(int pid) {
    char path[32], records[1024];
    uint64_t services = 0;
    fmt_into(path, sizeof path, "/proc/%d/task", pid);
    long fd = SYS(openat, AT_FDCWD, path, O_DIRECTORY | O_CLOEXEC), n;
    if (fd < 0) return 0;
    while ((n = SYS(getdents64, fd, records, sizeof records)) > 0)
        for (long at = 0; at < n;) {
            uint16_t reclen;
            memcpy(&reclen, records + at + 16, sizeof reclen);
            int tid = tid_of(records + at + 19);
            services += tid > 0 && task_is_service(tid);
            at += reclen;
        }
    SYS(close, fd);
    return services;
}
