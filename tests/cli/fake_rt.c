/* A runtime that runs nothing: it speaks the channel's protocol as its arguments say, to test the controller.
 *   reprise-rt --start OPTIONS PATH -- NAME WORD...
 * WORDs while recording:
 *   events N SIZE   N events of SIZE bytes, numbered       slow N SIZE US   the same, with a pause after each
 *   file PATH       has a file kept                        sleep MS
 *   end STATUS      END, closes the stream, ends so        exit N           ends without a word
 *   garbage         an event without sense                 wild             a head far away
 *   kill SIG        itself                                 child WORD...    a process with a stream of its own does the rest
 *   daemon WORD...  the same, and nobody waits for it      say TEXT         on stdout
 *   env NAME        says its value                         fds              says which descriptors it has
 * While replaying: takes the events of its stream, checks their numbers, says how many there were, ends as END says. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log/channel.h"

static struct channel *channel;
static struct ring *ring;
static uint8_t *data;
static int channel_fd = -1, socket_fd = -1;
static uint64_t count, stream;

static void fail(const char *what) {
    fprintf(stderr, "fake_rt: %s: %s\n", what, strerror(errno));
    _exit(99);
}

static long option(const char *options, const char *key, long otherwise) {
    const char *p = strstr(options, key);
    return p ? strtol(p + strlen(key), NULL, 10) : otherwise;
}

static void futex_wait(uint32_t *word, uint32_t seen) {
    struct timespec t = {0, 200000000};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}
static void futex_wake(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, 1 << 30, NULL, NULL, 0); }
static void bell(void) {
    __atomic_add_fetch(&channel->doorbell, 1, __ATOMIC_SEQ_CST);
    futex_wake(&channel->doorbell);
}

static void use_ring(uint32_t i) {
    ring = &channel->rings[i];
    data = (uint8_t *)channel + channel_ring_offset(i);
    count = 0;
}

static void claim(uint64_t number, uint32_t state) {
    uint32_t start = __atomic_fetch_add(&channel->next_ring, 1, __ATOMIC_RELAXED);
    for (uint32_t k = 0; k < channel->n_rings; k++) {
        uint32_t free_state = RING_FREE;
        use_ring((start + k) % channel->n_rings);
        if (!__atomic_compare_exchange_n(&ring->state, &free_state, RING_CLAIMED, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        ring->stream = number;
        ring->head = ring->tail = 0;
        ring->pid = (uint32_t)getpid();
        __atomic_store_n(&ring->state, state, __ATOMIC_RELEASE);
        bell();
        return;
    }
    fail("no ring");
}

/* ---- recording ---- */

static void copy_in(const void *from, size_t n, uint64_t at) {
    for (size_t i = 0; i < n; i++) data[(at + i) & (RING_BYTES - 1)] = ((const uint8_t *)from)[i];
}

static void put(const struct event *e) {
    uint64_t head = ring->head;
    for (;;) {
        uint32_t seen = __atomic_load_n(&ring->space, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&channel->stopped, __ATOMIC_ACQUIRE)) return;
        __atomic_store_n(&ring->writer_waits, 1, __ATOMIC_SEQ_CST);
        if (head + e->size - __atomic_load_n(&ring->tail, __ATOMIC_SEQ_CST) <= RING_BYTES) break;
        bell();
        futex_wait(&ring->space, seen);
        if (kill((pid_t)channel->controller, 0) < 0 && errno == ESRCH) return;
    }
    ring->writer_waits = 0;
    copy_in(e, e->size, head);
    __atomic_store_n(&ring->head, head + e->size, __ATOMIC_RELEASE);
}

static void put_numbered(uint32_t size) {
    static uint64_t room[EVENT_MAX / 8];
    struct event *e = (struct event *)room;
    memset(room, 0, size);
    for (uint32_t i = sizeof *e + sizeof(struct ev_memory); i < size; i += 8) room[i / 8] = (count + i) * 2654435761u;
    *e = (struct event){.kind = EV_MEMORY, .size = size, .ticks = count++};
    ((struct ev_memory *)(e + 1))->len = size - (uint32_t)sizeof *e - (uint32_t)sizeof(struct ev_memory);
    put(e);
}

static void keep(const char *path) {
    int fd = open(path, O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) fail(path);
    uint64_t mtime = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    uint64_t ctime = (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec;
    uint32_t slot = channel_file_slot(st.st_dev, st.st_ino, mtime);
    for (uint32_t i = 0; i < CHANNEL_FILE_PROBES; i++) {
        struct channel_file_message m = {.entry = (slot + i) & (CHANNEL_FILES - 1)};
        struct channel_file *e = &channel->files[m.entry];
        if (e->state == FILE_KEPT && e->dev == st.st_dev && e->ino == st.st_ino && e->mtime_ns == mtime &&
            e->ctime_ns == ctime && e->size == (uint64_t)st.st_size) {
            e->reserved = 1;
            printf("known %016lx%016lx\n", e->name.hi, e->name.lo);
            break;
        }
        if (e->state != FILE_FREE) continue;
        *e = (struct channel_file){FILE_BUSY, 0, st.st_dev, st.st_ino, (uint64_t)st.st_size, mtime, ctime, {0, 0}};
        union {
            char bytes[CMSG_SPACE(sizeof fd)];
            struct cmsghdr align;
        } control = {{0}};
        struct iovec iov = {&m, sizeof m};
        struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        struct cmsghdr *c = CMSG_FIRSTHDR(&h);
        *c = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
        if (sendmsg(socket_fd, &h, 0) < 0) fail("sendmsg");
        while (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == FILE_BUSY) futex_wait(&e->state, FILE_BUSY);
        printf("%s %016lx%016lx\n", e->state == FILE_KEPT ? "kept" : "failed", e->name.hi, e->name.lo);
        break;
    }
    fflush(stdout);
    close(fd);
}

static void say_fds(void) {
    for (int fd = 0; fd < 5000; fd++)
        if (fcntl(fd, F_GETFD) >= 0 && fd != channel_fd && fd != socket_fd) printf("%d ", fd);
    puts("");
}

static void end(int status) {
    struct {
        struct event e;
        struct ev_exit x;
    } last = {{.kind = EV_END, .size = sizeof last, .ticks = count}, {.status = status}};
    put(&last.e);
    __atomic_store_n(&ring->state, RING_CLOSED, __ATOMIC_RELEASE);
    fflush(stdout);
    if (status & 0x7f) {
        kill(getpid(), status & 0x7f);
        pause();
    }
    _exit(status >> 8);
}

static pid_t new_process(void) {
    uint64_t number = __atomic_fetch_add(&channel->next_stream, 1, __ATOMIC_RELAXED);
    struct ring *own = ring;
    uint8_t *own_data = data;
    uint64_t own_count = count;
    fflush(stdout);
    claim(number, RING_OPEN);
    pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid == 0) {
        ring->pid = (uint32_t)getpid();
        return 0;
    }
    ring = own;
    data = own_data;
    count = own_count;
    return pid;
}

static void record(char **w) {
    for (; *w; w++) {
        const char *word = *w;
        if (strcmp(word, "events") == 0 || strcmp(word, "slow") == 0) {
            long n = atol(w[1]), size = atol(w[2]), us = word[0] == 's' ? atol(w[3]) : 0;
            for (long i = 0; i < n; i++) {
                put_numbered((uint32_t)size);
                if (us) usleep((useconds_t)us);
            }
            w += us ? 3 : 2;
        } else if (strcmp(word, "file") == 0) {
            keep(*++w);
        } else if (strcmp(word, "sleep") == 0) {
            usleep((useconds_t)atol(*++w) * 1000);
        } else if (strcmp(word, "end") == 0) {
            end(atoi(*++w));
        } else if (strcmp(word, "exit") == 0) {
            fflush(stdout);
            _exit(atoi(*++w));
        } else if (strcmp(word, "garbage") == 0) {
            struct event e = {.kind = EV_TURN, .size = 13};
            copy_in(&e, sizeof e, ring->head);
            __atomic_store_n(&ring->head, ring->head + sizeof e, __ATOMIC_RELEASE);
        } else if (strcmp(word, "wild") == 0) {
            __atomic_store_n(&ring->head, ring->head + (1ull << 40), __ATOMIC_RELEASE);
        } else if (strcmp(word, "kill") == 0) {
            kill(getpid(), atoi(*++w));
        } else if (strcmp(word, "say") == 0) {
            puts(*++w);
            fflush(stdout);
        } else if (strcmp(word, "env") == 0) {
            puts(getenv(*++w) ? getenv(*w) : "not set");
        } else if (strcmp(word, "fds") == 0) {
            say_fds();
        } else if (strcmp(word, "child") == 0) {
            pid_t pid = new_process();
            if (pid) {
                waitpid(pid, NULL, 0);
                end(0);
            }
        } else if (strcmp(word, "daemon") == 0) {
            if (new_process()) end(0);
        } else {
            fail(word);
        }
    }
    end(0);
}

/* ---- replaying ---- */

static void done(uint32_t how, int status) {
    ring->ended = how;
    ring->status = status;
    __atomic_store_n(&ring->state, RING_DONE, __ATOMIC_RELEASE);
    bell();
    _exit(how == RING_ENDED_DIVERGED ? 125 : 0);
}

static uint64_t wait_for(uint64_t want) { /* bytes there are: fewer than `want` at the end of the stream */
    for (;;) {
        uint32_t seen = __atomic_load_n(&ring->filled, __ATOMIC_ACQUIRE);
        uint32_t state = __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE);
        __atomic_store_n(&ring->reader_waits, 1, __ATOMIC_SEQ_CST);
        uint64_t there = __atomic_load_n(&ring->head, __ATOMIC_SEQ_CST) - ring->tail;
        if (there >= want || state == RING_CLOSED) return there;
        futex_wait(&ring->filled, seen);
    }
}

static void replay(const char *options) {
    claim(stream, RING_WANTED);
    while (__atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) == RING_WANTED) futex_wait(&ring->state, RING_WANTED);
    if (ring->state == RING_REFUSED) {
        fprintf(stderr, "reprise: no stream %lu\n", stream);
        _exit(125);
    }
    if (option(options, "diverge=", 0)) {
        fprintf(stderr, "reprise: diverged\n");
        done(RING_ENDED_DIVERGED, 0);
    }
    static uint64_t room[EVENT_MAX / 8];
    struct event *e = (struct event *)room;
    for (; wait_for(sizeof *e) >= sizeof *e; count++) {
        for (size_t i = 0; i < sizeof *e; i++) ((uint8_t *)room)[i] = data[(ring->tail + i) & (RING_BYTES - 1)];
        if (wait_for(e->size) < e->size) fail("half an event");
        for (size_t i = sizeof *e; i < e->size; i++) ((uint8_t *)room)[i] = data[(ring->tail + i) & (RING_BYTES - 1)];
        __atomic_store_n(&ring->tail, ring->tail + e->size, __ATOMIC_RELEASE);
        if (e->ticks != count) fail("events out of order");
        for (uint32_t i = sizeof *e + sizeof(struct ev_memory); e->kind == EV_MEMORY && i < e->size; i += 8)
            if (room[i / 8] != (count + i) * 2654435761u) fail("other bytes");
        if (e->kind == EV_END) {
            printf("stream %lu: %lu events, ended\n", stream, count);
            fflush(stdout);
            done(RING_ENDED_PROCESS, ((struct ev_exit *)(e + 1))->status);
        }
    }
    printf("stream %lu: %lu events, cut\n", stream, count);
    fflush(stdout);
    done(RING_ENDED_CUT, 0);
}

int main(int argc, char **argv) {
    if (argc < 6 || strcmp(argv[1], "--start") != 0) fail("arguments");
    const char *options = argv[2];
    channel_fd = (int)option(options, "chanfd=", -1);
    socket_fd = (int)option(options, "sockfd=", -1);
    stream = (uint64_t)option(options, "stream=", 0);
    void *p = mmap(NULL, sizeof *channel, PROT_READ | PROT_WRITE, MAP_SHARED, channel_fd, 0);
    if (p == MAP_FAILED) fail("mmap");
    const uint32_t rings = ((struct channel *)p)->n_rings;
    p = mremap(p, sizeof *channel, channel_ring_offset(rings), MREMAP_MAYMOVE);
    if (p == MAP_FAILED) fail("mremap");
    channel = p;
    if (channel->magic != CHANNEL_MAGIC) fail("magic");
    if (strstr(options, "mode=replay")) {
        if (stream == 0 && option(options, "streams=", 0) > 1 && fork() == 0) stream = 1;
        replay(options);
    }
    use_ring((uint32_t)option(options, "ring=", 0));
    ring->pid = (uint32_t)getpid();
    record(argv + 6);
}
