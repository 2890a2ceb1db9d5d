/* File keeper: see file_keeper.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "controller/channel_host.h"
#include "controller/complain.h"
#include "controller/file_keeper.h"

#define RECALL_MAX 3000

/* ---- objects that the log names ---- */

static struct object_name *find_named(struct file_keeper *k, struct object_name n) {
    size_t i = n.lo & (k->named_size - 1);
    while ((k->named[i].lo || k->named[i].hi) && (k->named[i].lo != n.lo || k->named[i].hi != n.hi))
        i = (i + 1) & (k->named_size - 1);
    return &k->named[i];
}

static bool grow_named(struct file_keeper *k) {
    size_t old_size = k->named_size;
    struct object_name *old = k->named, *bigger = calloc(old_size ? old_size * 2 : 256, sizeof *bigger);
    if (!bigger) return false;
    k->named = bigger;
    k->named_size = old_size ? old_size * 2 : 256;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].lo || old[i].hi) *find_named(k, old[i]) = old[i];
    free(old);
    return true;
}

/* True: the log did not name it so far. */
static bool note_name(struct file_keeper *k, struct object_name n) {
    bool fresh = true;
    pthread_mutex_lock(&k->lock);
    if (k->n_named * 2 < k->named_size || grow_named(k)) {
        struct object_name *at = find_named(k, n);
        fresh = !(at->lo || at->hi);
        if (fresh) {
            *at = n;
            k->n_named++;
        }
    }
    pthread_mutex_unlock(&k->lock);
    return fresh;
}

static void name_object(struct file_keeper *k, const struct known_file *f) {
    if (!note_name(k, f->name)) return;
    size_t path_len = f->path ? strlen(f->path) : 0;
    struct frame_object *o = malloc(sizeof *o + path_len);
    if (!o) return;
    *o = (struct frame_object){.name = f->name,
                               .size = f->size,
                               .dev = f->dev,
                               .ino = f->ino,
                               .mtime_ns = f->mtime_ns,
                               .ctime_ns = f->ctime_ns,
                               .mode = f->mode,
                               .path_len = (uint32_t)path_len};
    memcpy(o + 1, f->path ? f->path : "", path_len);
    writer_put(k->writer, FRAME_OBJECT, 0, 0, o, sizeof *o + path_len);
}

/* ---- files that are known at the start ---- */

static bool is_entry_of(const struct channel_file *e, const struct known_file *f) {
    return e->dev == f->dev && e->ino == f->ino && e->size == f->size && e->mtime_ns == f->mtime_ns &&
           e->ctime_ns == f->ctime_ns;
}

/* Puts a file into the channel's table. False: it is there, or there is no room. */
static bool enter(struct channel *c, const struct known_file *f, uint32_t *at) {
    uint32_t slot = channel_file_slot(f->dev, f->ino, f->mtime_ns);
    for (uint32_t i = 0; i < CHANNEL_FILE_PROBES / 2; i++) { /* the rest is for the program's own files */
        *at = (slot + i) & (CHANNEL_FILES - 1);
        struct channel_file *e = &c->files[*at];
        if (e->state == FILE_KEPT) {
            if (is_entry_of(e, f)) return false;
            continue;
        }
        *e = (struct channel_file){.state = FILE_KEPT,
                                   .dev = f->dev,
                                   .ino = f->ino,
                                   .size = f->size,
                                   .mtime_ns = f->mtime_ns,
                                   .ctime_ns = f->ctime_ns,
                                   .name = f->name};
        return true;
    }
    return false;
}

static void drop_recalled(struct file_keeper *k, size_t i) {
    free(k->recalled[i].path);
    k->n_recalled--;
    k->recalled[i] = k->recalled[k->n_recalled];
    k->recalled_at[i] = k->recalled_at[k->n_recalled];
}

void keeper_open(struct file_keeper *k, struct channel *c, struct store *s, struct log_writer *w, int socket) {
    *k = (struct file_keeper){.channel = c, .store = s, .writer = w, .socket = socket};
    pthread_mutex_init(&k->lock, NULL);
    k->n_recalled = store_recall(s, &k->recalled, RECALL_MAX);
    k->recalled_at = calloc(k->n_recalled + 1, sizeof *k->recalled_at);
    if (!k->recalled_at) k->n_recalled = 0;
    for (size_t i = 0; i < k->n_recalled;) {
        if (enter(c, &k->recalled[i], &k->recalled_at[i]))
            i++;
        else
            drop_recalled(k, i);
    }
}

void keeper_name_used(struct file_keeper *k) {
    for (size_t i = 0; i < k->n_recalled;) {
        if (CHANNEL_GET(k->channel->files[k->recalled_at[i]].reserved)) {
            name_object(k, &k->recalled[i]);
            drop_recalled(k, i);
        } else {
            i++;
        }
    }
}

/* ---- files that runtimes send ---- */

static void answer(struct channel_file *e, enum file_state state) {
    CHANNEL_SET(e->state, state);
    futex_wake_all(&e->state);
}

static void keep(struct file_keeper *k, struct channel_file *e, int fd) {
    struct object_name name;
    struct stat st;
    int err = store_keep(k->store, fd, &name, &st);
    struct known_file f = {0};
    if (!err) {
        f = known_of(fd, &st, name);
        name_object(k, &f);
        store_remember(k->store, &f);
        e->name = name;
    } else if (!k->complained && err != ECANCELED) {
        k->complained = true;
        f = known_of(fd, &st, (struct object_name){0, 0});
        complain("cannot keep the contents of a mapped file%s%s: %s", f.path && *f.path ? " " : "",
                 f.path ? f.path : "", strerror(err));
    }
    free(f.path);
    answer(e, err ? FILE_FAILED : FILE_KEPT);
}

/* One message. False: there will be no more (or none now, if flags say not to wait). */
static bool receive(struct file_keeper *k, int flags) {
    struct channel_file_message m;
    union {
        char bytes[CMSG_SPACE(8 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {&m, sizeof m};
    struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(k->socket, &h, MSG_CMSG_CLOEXEC | flags);
    if (n < 0) return errno == EINTR;
    int fd = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int got;
            memcpy(&got, CMSG_DATA(c) + i * sizeof got, sizeof got);
            if (fd < 0)
                fd = got;
            else
                close(got);
        }
    }
    if (n == sizeof m && m.entry < CHANNEL_FILES && CHANNEL_GET(k->channel->files[m.entry].state) == FILE_BUSY)
        keep(k, &k->channel->files[m.entry], fd); /* no descriptor: EBADF */
    if (fd >= 0) close(fd);
    return n > 0 || fd >= 0;
}

static void *keeper_main(void *arg) {
    while (receive(arg, 0)) {}
    return NULL;
}

bool keeper_start(struct file_keeper *k) { return (errno = pthread_create(&k->thread, NULL, keeper_main, k)) == 0; }

/* Who still waits learns that it failed. Pages that nobody has used yet are left alone. */
static void release_waiting(struct channel *c) {
    unsigned char used[sizeof *c / 4096];
    if (mincore(c, sizeof *c, used) < 0) memset(used, 1, sizeof used);
    for (uint32_t i = 0; i < CHANNEL_FILES; i++) {
        struct channel_file *e = &c->files[i];
        if (used[((uint8_t *)e - (uint8_t *)c) / 4096] && CHANNEL_GET(e->state) == FILE_BUSY) answer(e, FILE_FAILED);
    }
}

void keeper_finish(struct file_keeper *k) {
    keeper_name_used(k);
    __atomic_store_n(&k->store->gives_up, true, __ATOMIC_RELAXED); /* who sent what is not kept yet is no more */
    shutdown(k->socket, SHUT_RDWR);
    pthread_join(k->thread, NULL);
    while (receive(k, MSG_DONTWAIT)) {}
    release_waiting(k->channel);
}
