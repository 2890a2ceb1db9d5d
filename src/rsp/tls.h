/* Thread-local variables: gdb knows the offset, glibc the rest. gdb is asked for symbols (qSymbol), then asks (qGetTLSAddr). */
#ifndef REPRISE_RSP_TLS_H
#define REPRISE_RSP_TLS_H

#include "rsp/target.h"
#include "rsp/text.h"

enum tls_symbol { TLS_MODID, TLS_OFFSET, TLS_DTVP, TLS_DTV, TLS_POINTER, TLS_SYMBOLS };

struct tls {
    int asked; /* symbols that gdb has answered for */
    uint64_t at[TLS_SYMBOLS];
};

/* The next question to gdb, or OK. */
void tls_ask(struct tls *, struct out *reply);
/* gdb's answer, and the next question. */
void tls_answer(struct tls *, struct in *, struct out *reply);
/* `thread`: its fs base. False: it cannot be told, or there is none yet. */
bool tls_find(const struct tls *, struct target *, uint64_t thread, uint64_t link_map, uint64_t offset, uint64_t *at);

#endif
