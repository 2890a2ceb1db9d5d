// Two threads accept connections of three others on one socket: who serves whom is a race.
#include "race.h"
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
static int listener;
static struct sockaddr_in at = {.sin_family = AF_INET};
static int served[2];
static uint64_t digest[2];
static char answers[3][16];
static void *body(void *arg) {
    intptr_t me = (intptr_t)arg;
    if (me < 2) {
        for (;;) {
            struct sockaddr_in from;
            socklen_t len = sizeof from;
            int fd = accept(listener, (struct sockaddr *)&from, &len);
            if (fd < 0) return NULL;
            char c;
            if (read(fd, &c, 1) == 1 && c == 'q') {
                close(fd);
                return NULL;
            }
            served[me]++;
            digest[me] = mix(mix(digest[me], (uint64_t)c), len);
            char answer = (char)('0' + me);
            if (write(fd, &answer, 1) != 1) return NULL;
            close(fd);
        }
    }
    for (int i = 0; i < 11; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        char c = (char)('a' + me);
        if (connect(fd, (struct sockaddr *)&at, sizeof at) || write(fd, &c, 1) != 1 ||
            read(fd, &answers[me - 2][i], 1) != 1)
            answers[me - 2][i] = '!';
        close(fd);
    }
    return NULL;
}
static void *quit(void *arg) {
    for (int i = 0; i < 2; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&at, sizeof at) || write(fd, "q", 1) != 1) return NULL;
        struct pollfd p = {fd, POLLIN, 0};
        poll(&p, 1, 1000);
        close(fd);
    }
    return NULL;
}
static void *all(void *arg) {
    pthread_t t[3];
    for (intptr_t i = 0; i < 3; i++) pthread_create(&t[i], NULL, body, (void *)(i + 2));
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    return quit(NULL);
}
int main(void) {
    socklen_t len = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 20) ||
        getsockname(listener, (struct sockaddr *)&at, &len))
        return 1;
    pthread_t t;
    pthread_create(&t, NULL, all, NULL);
    race(2, body);
    pthread_join(t, NULL);
    for (int i = 0; i < 3; i++) puts(answers[i]);
    for (int i = 0; i < 2; i++) printf("server %d: %d, %016lx\n", i, served[i], digest[i]);
    return 0;
}
