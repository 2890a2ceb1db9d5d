/* One connection of a debugger. While the target runs a thread looks for Ctrl-C: the wire is its own then. */
#include "rsp/serve.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rsp/packets.h"

#define AGAIN_MS 20 /* an interrupt may come just before the target begins to run */

struct watcher {
    pthread_t thread;
    bool started;
    int stop_fd;
};

static void *watch_thread(void *arg) {
    struct gdb *g = arg;
    struct watcher *w = g->watch_arg;
    struct pollfd stop = {.fd = w->stop_fd, .events = POLLIN};
    if (!wire_wait_interrupt(g->wire, w->stop_fd)) return NULL;
    g->interrupted = 1;
    do g->target->ops->interrupt(g->target);
    while (poll(&stop, 1, AGAIN_MS) == 0);
    return NULL;
}

static void watch(struct gdb *g, bool runs) {
    struct watcher *w = g->watch_arg;
    if (runs) {
        sigset_t all, before; /* signals are for the thread that serves */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        w->started = pthread_create(&w->thread, NULL, watch_thread, g) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    } else if (w->started) {
        uint64_t count = 1;
        while (write(w->stop_fd, &count, sizeof count) < 0) {}
        pthread_join(w->thread, NULL);
        while (read(w->stop_fd, &count, sizeof count) < 0) {}
        w->started = false;
    }
}

enum served serve(int fd, struct target *t, struct stop *at, const char *about, int printed) {
    static struct wire wire;
    struct watcher watcher = {.stop_fd = eventfd(0, EFD_CLOEXEC)};
    struct gdb *g = calloc(1, sizeof *g);
    char *packet = malloc(PACKET_MAX + 1);
    enum served how = SERVED_LEFT;
    if (!g || !packet || watcher.stop_fd < 0) goto out;
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
    gdb_close(g);
out:
    if (watcher.stop_fd >= 0) close(watcher.stop_fd);
    free(packet);
    free(g);
    return how;
}
