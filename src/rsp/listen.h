/* Where debuggers connect: a socket in a private directory, or a port of the loopback interface that only the same user gets
 * through to. */
#ifndef REPRISE_RSP_LISTEN_H
#define REPRISE_RSP_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#define LISTEN_PATH_MAX 108

/* -1: errno says why. *port 0: any, which it then is. */
int listen_path(const char *path);
int listen_port(unsigned *port);

/* The next connection; -1: `is_over(arg)`, which is asked ten times a second, or an error. */
int listen_accept(int fd, bool (*is_over)(void *arg), void *arg);

#endif
