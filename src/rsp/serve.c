/* One connection of a debugger. A thread looks for Ctrl-C while the target runs for longer than a step takes: the wire is its own then. */
#include "rsp/serve.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rsp/packets.h"

#define LATER_MS 10 /* most runs are over by then */
#define AGAIN_MS 20 /* an interrupt may come just before the target begins to run */

struct watcher {
    pthread_t thread;
    bool started;
    int go_fd, stop_fd;
    pthread_mutex_t lock;
    pthread_cond_t left;
    bool runs, ends; /* the target; the connection */
    bool watches;    /* the wire is the thread's */
};

static void tell(int fd) {
    uint64_t count = 1;
    while (write(fd, &count, sizeof count) < 0) {}
}

static void await(int fd) {
    uint64_t count;
    while (read(fd, &count, sizeof count) < 0) {}
}

static void watch_wire(struct gdb *g, struct watcher *w) {
    struct pollfd stop = {.fd = w->stop_fd, .events = POLLIN};
    if (wire_wait_interrupt(g->wire, w->stop_fd)) {
        g->interrupted = 1;
        do g->target->ops->interrupt(g->target);
        while (poll(&stop, 1, AGAIN_MS) == 0);
    }
    await(w->stop_fd);
}

static void *watch_thread(void *arg) {
    struct gdb *g = arg;
    struct watcher *w = g->watch_arg;
    for (;;) {
        await(w->go_fd);
        pthread_mutex_lock(&w->lock);
        bool ends = w->ends;
        pthread_mutex_unlock(&w->lock);
        if (ends) return NULL;
        poll(NULL, 0, LATER_MS);
        pthread_mutex_lock(&w->lock);
        w->watches = w->runs;
        pthread_mutex_unlock(&w->lock);
        if (!w->watches) continue;
        watch_wire(g, w);
        pthread_mutex_lock(&w->lock);
        w->watches = false;
        pthread_cond_signal(&w->left);
        pthread_mutex_unlock(&w->lock);
    }
}

static void start_thread(struct gdb *g, struct watcher *w) {
    sigset_t all, before; /* signals are for the thread that serves */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->started = pthread_create(&w->thread, NULL, watch_thread, g) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void watch(struct gdb *g, bool runs) {
    struct watcher *w = g->watch_arg;
    if (!w->started) start_thread(g, w);
    if (!w->started) return;
    pthread_mutex_lock(&w->lock);
    w->runs = runs;
    if (!runs && w->watches) tell(w->stop_fd);
    while (!runs && w->watches) pthread_cond_wait(&w->left, &w->lock);
    pthread_mutex_unlock(&w->lock);
    if (runs) tell(w->go_fd);
}

static bool open_watcher(struct watcher *w) {
    w->go_fd = eventfd(0, EFD_CLOEXEC);
    w->stop_fd = eventfd(0, EFD_CLOEXEC);
    return w->go_fd >= 0 && w->stop_fd >= 0;
}

static void close_watcher(struct watcher *w) {
    if (w->started) {
        pthread_mutex_lock(&w->lock);
        w->ends = true;
        pthread_mutex_unlock(&w->lock);
        tell(w->go_fd);
        pthread_join(w->thread, NULL);
    }
    if (w->go_fd >= 0) close(w->go_fd);
    if (w->stop_fd >= 0) close(w->stop_fd);
}

enum served serve(int fd, struct target *t, struct stop *at, const char *about, int printed) {
    static struct wire wire;
    struct watcher watcher = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};
    struct gdb *g = calloc(1, sizeof *g);
    char *packet = malloc(PACKET_MAX + 1);
    enum served how = SERVED_LEFT;
    if (!open_watcher(&watcher) || !g || !packet) goto out;
    wire_open(&wire, fd);
    gdb_open(g, t, &wire, *at);
    g->about = about;
    g->printed = printed;
    if (printed) g->printed_to = lseek(printed, 0, SEEK_END);
    g->watch = watch;
    g->watch_arg = &watcher;
    for (long n; !g->ended && (n = wire_get(&wire, packet)) >= 0;) {
        gdb_packet(g, packet, (size_t)n);
        if (!g->silent && !wire_put(&wire, g->reply.bytes, g->reply.len)) break;
    }
    if (g->killed) how = SERVED_KILLED;
    *at = g->last;
    close_watcher(&watcher);
    gdb_close(g);
    free(packet);
    free(g);
    return how;
out:
    close_watcher(&watcher);
    free(packet);
    free(g);
    return how;
}
