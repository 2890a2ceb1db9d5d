/* Where a thread's variables are: glibc says by symbols of its own, meant for debuggers, how to find them. */
#include "rsp/tls.h"

#include <string.h>

static const char *const names[TLS_SYMBOLS] = {
    [TLS_MODID] = "_thread_db_link_map_l_tls_modid", [TLS_OFFSET] = "_thread_db_link_map_l_tls_offset",
    [TLS_DTVP] = "_thread_db_pthread_dtvp",          [TLS_DTV] = "_thread_db_dtv_dtv",
    [TLS_POINTER] = "_thread_db_dtv_t_pointer_val",
};

void tls_ask(struct tls *tls, struct out *reply) {
    if (tls->asked == TLS_SYMBOLS) {
        out_str(reply, "OK");
        return;
    }
    out_str(reply, "qSymbol:");
    out_hex(reply, names[tls->asked], strlen(names[tls->asked]));
}

/* VALUE:NAME, or :NAME if there is no such symbol. */
void tls_answer(struct tls *tls, struct in *in, struct out *reply) {
    uint64_t value = 0;
    char name[64] = "";
    in_hex(in, &value);
    if (in_char(in, ':') && in_text(in, name, sizeof name))
        for (int i = 0; i < TLS_SYMBOLS; i++)
            if (strcmp(names[i], name) == 0) {
                tls->at[i] = value;
                tls->asked = i + 1;
            }
    tls_ask(tls, reply);
}

static bool read_word(struct target *t, uint64_t addr, uint64_t *word) {
    return t->ops->read_memory(t, addr, word, sizeof *word) == sizeof *word;
}

/* Of a field: its size in bits, how many there are, where. */
struct field {
    uint32_t bits, count, offset;
};

static bool read_field(const struct tls *tls, struct target *t, enum tls_symbol which, struct field *f) {
    return tls->at[which] && t->ops->read_memory(t, tls->at[which], f, sizeof *f) == sizeof *f;
}

/* A library whose block the thread has not needed yet has it at a fixed distance, or nowhere. */
static bool fixed_place(const struct tls *tls, struct target *t, uint64_t thread, uint64_t link_map, uint64_t *at) {
    struct field offset;
    uint64_t distance;
    if (!link_map || !read_field(tls, t, TLS_OFFSET, &offset) || !read_word(t, link_map + offset.offset, &distance))
        return false;
    *at = thread - distance;
    return distance + 2 > 2; /* neither 0 nor -1 (none), -2 (not there) */
}

bool tls_find(const struct tls *tls, struct target *t, uint64_t thread, uint64_t link_map, uint64_t offset,
              uint64_t *at) {
    struct field modid, dtvp, dtv, pointer;
    uint64_t module = 1, table, length, block; /* a static program is module 1 and has no link map */
    if (!read_field(tls, t, TLS_DTVP, &dtvp) || !read_field(tls, t, TLS_DTV, &dtv) ||
        !read_field(tls, t, TLS_POINTER, &pointer))
        return false;
    if (link_map &&
        (!read_field(tls, t, TLS_MODID, &modid) || !read_word(t, link_map + modid.offset, &module) || !module))
        return false;
    uint64_t entry = dtv.bits / 8;
    bool known = read_word(t, thread + dtvp.offset, &table) && read_word(t, table - entry, &length) &&
                 module <= length && read_word(t, table + dtv.offset + module * entry + pointer.offset, &block) &&
                 block + 1 > 1;
    if (!known && !fixed_place(tls, t, thread, link_map, &block)) return false;
    *at = block + offset;
    return true;
}
