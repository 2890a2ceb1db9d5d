/* Packets on a socket. */
#include "rsp/wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define RESENDS_MAX 8
#define LATE_MS 1000 /* nobody types that quickly: it is the same command */

void wire_open(struct wire *w, int fd) { *w = (struct wire){.fd = fd, .acks = true}; }

static bool lose(struct wire *w, const char *why) {
    if (!w->lost) w->lost = why;
    return false;
}

/* Reads what is there into the room behind `end`. */
static bool fill(struct wire *w) {
    if (w->lost) return false;
    if (w->at == w->end) w->at = w->end = 0;
    if (w->end == sizeof w->in) return lose(w, "too much at once");
    for (;;) {
        ssize_t n = read(w->fd, w->in + w->end, sizeof w->in - w->end);
        if (n > 0) {
            w->end += (size_t)n;
            return true;
        }
        if (n == 0) return lose(w, "closed");
        if (errno != EINTR) return lose(w, strerror(errno));
    }
}

/* The next byte, -1: lost. */
static int next_byte(struct wire *w) {
    if (w->at == w->end && !fill(w)) return -1;
    return w->in[w->at++];
}

/* In one go: a packet in three pieces would wake the peer three times. */
static bool send_all(struct wire *w, struct iovec *parts, size_t n) {
    while (n && !w->lost) {
        ssize_t sent = sendmsg(w->fd, &(struct msghdr){.msg_iov = parts, .msg_iovlen = n}, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return lose(w, sent < 0 ? strerror(errno) : "closed");
        while (n && (size_t)sent >= parts->iov_len) sent -= (ssize_t)parts++->iov_len, n--;
        if (n) *parts = (struct iovec){(char *)parts->iov_base + sent, parts->iov_len - (size_t)sent};
    }
    return !w->lost;
}

static int digit(int c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Behind $. Length without escapes; -1: lost; -2: the sum is wrong. */
static long get_body(struct wire *w, char *to) {
    uint8_t sum = 0;
    size_t n = 0, raw = 0;
    for (bool escaped = false;;) {
        int c = next_byte(w);
        if (c < 0) return -1;
        if (c == '#') break;
        if (c == '$') { /* the packet before was cut off */
            sum = 0, n = 0, raw = 0, escaped = false;
            continue;
        }
        if (++raw > PACKET_MAX) {
            lose(w, "a packet is too long");
            return -1;
        }
        sum += (uint8_t)c;
        if (c == '}' && !escaped) {
            escaped = true;
            continue;
        }
        to[n++] = (char)(escaped ? c ^ 0x20 : c);
        escaped = false;
    }
    int high = next_byte(w), low = high < 0 ? -1 : next_byte(w);
    if (low < 0) return -1;
    to[n] = '\0';
    high = digit(high), low = digit(low);
    return w->acks && (high < 0 || low < 0 || sum != high * 16 + low) ? -2 : (long)n;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000 + 1;
}

bool wire_take_late_interrupt(struct wire *w) {
    bool is_late = w->late_ms && now_ms() - w->late_ms <= LATE_MS;
    w->late_ms = 0;
    return is_late;
}

void wire_interrupt_was_late(struct wire *w) { w->late_ms = now_ms(); }

long wire_get(struct wire *w, char *to) {
    for (;;) {
        int c = next_byte(w);
        if (c < 0) return -1;
        if (c == WIRE_INTERRUPT) wire_interrupt_was_late(w);
        if (c == '+' || c == '-' || c == WIRE_INTERRUPT) continue;
        if (c != '$') {
            lose(w, "that is not gdb's remote protocol");
            return -1;
        }
        long n = get_body(w, to);
        if (n == -1) return -1;
        if (w->acks && !send_all(w, &(struct iovec){n >= 0 ? "+" : "-", 1}, 1)) return -1;
        if (n >= 0) return n;
    }
}

/* True: the peer has got it. */
static bool is_acknowledged(struct wire *w, bool *again) {
    *again = false;
    for (;;) {
        int c = next_byte(w);
        if (c < 0) return false;
        if (c == '+') return true;
        if (c == '$') { /* it goes on without a word */
            w->at--;
            return true;
        }
        if (c == WIRE_INTERRUPT) wire_interrupt_was_late(w);
        *again = c == '-';
        if (*again) return true;
        if (c != WIRE_INTERRUPT) return lose(w, "that is not gdb's remote protocol");
    }
}

bool wire_put(struct wire *w, const char *bytes, size_t n) {
    static const char hex[] = "0123456789abcdef";
    uint8_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += (uint8_t)bytes[i];
    char end[3] = {'#', hex[sum >> 4], hex[sum & 15]};
    for (int tries = 0; tries < RESENDS_MAX; tries++) {
        struct iovec parts[] = {{"$", 1}, {(char *)bytes, n}, {end, sizeof end}};
        if (!send_all(w, parts, 3)) return false;
        bool again;
        if (!w->acks) return true;
        if (!is_acknowledged(w, &again)) return false;
        if (!again) return true;
    }
    return lose(w, "it does not understand us");
}

bool wire_wait_interrupt(struct wire *w, int stop_fd) {
    for (;;) {
        while (w->at < w->end && (w->in[w->at] == '+' || w->in[w->at] == '-')) w->at++;
        if (w->at < w->end && w->in[w->at] == WIRE_INTERRUPT) {
            w->at++;
            return true;
        }
        /* Anything else is a packet before its time: only the end of the connection matters then. */
        bool full = w->at < w->end;
        struct pollfd fds[2] = {{.fd = w->fd, .events = full ? POLLRDHUP : POLLIN}, {.fd = stop_fd, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR) return false;
        if (fds[1].revents) return false;
        if (full ? fds[0].revents : fds[0].revents && !fill(w)) return true;
    }
}
