#include "sphere/sys/proc_text.h"

#include "inproc/str.h"
#include "inproc/sys.h"

char *lines_next(struct lines *in) {
    for (;;) {
        for (size_t i = in->at; i < in->len; i++)
            if (in->buf[i] == '\n') {
                char *line = in->buf + in->at;
                in->buf[i] = '\0';
                in->at = i + 1;
                return line;
            }
        memmove(in->buf, in->buf + in->at, in->len - in->at);
        in->len -= in->at;
        in->at = 0;
        long n = in->len < sizeof in->buf ? SYS(read, in->fd, in->buf + in->len, sizeof in->buf - in->len) : 0;
        if (n <= 0) return NULL;
        in->len += (size_t)n;
    }
}

void text_flush(struct text *out) {
    SYS(write, out->fd, out->buf, out->len);
    out->len = 0;
}

void text_put(struct text *out, const char *s, size_t n) {
    if (out->len + n > sizeof out->buf) text_flush(out);
    if (n > sizeof out->buf) {
        SYS(write, out->fd, s, n);
        return;
    }
    memcpy(out->buf + out->len, s, n);
    out->len += n;
}

void text_put_line(struct text *out, const char *line) {
    text_put(out, line, strlen(line));
    text_put(out, "\n", 1);
}
