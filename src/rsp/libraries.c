#include "rsp/libraries.h"

#include <elf.h>
#include <stddef.h>

#define LIBRARIES_MAX 4096 /* a list that the program has spoilt may have no end */
#define HEADERS_MAX 64
#define DYNAMIC_MAX 512
#define NAME_MAX_ 1024

/* As the dynamic linker has them (link.h), which are addresses of the program here. */
struct map {
    uint64_t addr, name, dynamic, next, previous;
};

static bool read_all(struct target *t, uint64_t addr, void *to, size_t n) {
    return t->ops->read_memory(t, addr, to, n) == n;
}

static uint64_t from_auxv(struct target *t, uint64_t type) {
    Elf64_auxv_t all[128];
    size_t n = t->ops->auxv(t, all, sizeof all) / sizeof *all;
    for (size_t i = 0; i < n && i < sizeof all / sizeof *all; i++)
        if (all[i].a_type == type) return all[i].a_un.a_val;
    return 0;
}

/* Where the program's segment of this type is; 0: it has none. */
static uint64_t segment(struct target *t, uint32_t type) {
    uint64_t at = from_auxv(t, AT_PHDR), n = from_auxv(t, AT_PHNUM), where = 0, bias = 0;
    bool found = false;
    for (uint64_t i = 0; at && i < n && i < HEADERS_MAX; i++) {
        Elf64_Phdr p;
        if (!read_all(t, at + i * sizeof p, &p, sizeof p)) return 0;
        if (p.p_type == PT_PHDR) bias = at - p.p_vaddr;
        if (p.p_type == type) where = p.p_vaddr, found = true;
    }
    return found ? where + bias : 0;
}

/* Where the dynamic section of the file that is mapped at base is; 0: it has none. */
static uint64_t dynamic_of(struct target *t, uint64_t base) {
    Elf64_Ehdr head;
    if (!base || !read_all(t, base, &head, sizeof head)) return 0;
    for (unsigned i = 0; i < head.e_phnum && i < HEADERS_MAX; i++) {
        Elf64_Phdr p;
        if (!read_all(t, base + head.e_phoff + i * sizeof p, &p, sizeof p)) return 0;
        if (p.p_type == PT_DYNAMIC) return base + p.p_vaddr;
    }
    return 0;
}

/* The first struct link_map; 0: the dynamic linker has not said yet. */
static uint64_t first_map(struct target *t) {
    uint64_t at = segment(t, PT_DYNAMIC), first;
    for (int i = 0; at && i < DYNAMIC_MAX; i++, at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn d;
        if (!read_all(t, at, &d, sizeof d) || d.d_tag == DT_NULL) return 0;
        if (d.d_tag != DT_DEBUG) continue;
        return d.d_un.d_ptr && read_all(t, d.d_un.d_ptr + 8, &first, sizeof first) ? first : 0;
    }
    return 0;
}

static void read_name(struct target *t, uint64_t at, char name[NAME_MAX_]) {
    size_t n = t->ops->read_memory(t, at, name, NAME_MAX_ - 1);
    name[n < NAME_MAX_ ? n : 0] = '\0';
}

static void put_library(struct out *o, const char *name, uint64_t map, uint64_t addr, uint64_t dynamic) {
    out_str(o, "<library name=\"");
    out_xml(o, name);
    out_format(o, "\" lm=\"0x%lx\" l_addr=\"0x%lx\" l_ld=\"0x%lx\" lmid=\"0x0\"/>\n", map, addr, dynamic);
}

/* Before the dynamic linker has a list, it is the only library: gdb knows that when a program starts, but not who comes back. */
static void put_interpreter(struct target *t, struct out *o) {
    uint64_t base = from_auxv(t, AT_BASE), at = segment(t, PT_INTERP), dynamic = dynamic_of(t, base);
    char name[NAME_MAX_];
    if (!at || !dynamic) return;
    read_name(t, at, name);
    if (name[0]) put_library(o, name, base, base, dynamic);
}

void libraries_xml(struct target *t, struct out *o) {
    uint64_t first = first_map(t), at = first;
    char name[NAME_MAX_];
    struct map m;
    out_str(o, "<library-list-svr4 version=\"1.0\"");
    if (first) out_format(o, " main-lm=\"0x%lx\"", first);
    out_str(o, ">\n");
    for (int i = 0; at && i < LIBRARIES_MAX && read_all(t, at, &m, sizeof m); i++, at = m.next) {
        read_name(t, m.name, name);
        if (at == first || !name[0]) continue; /* the program itself; the vDSO */
        put_library(o, name, at, m.addr, m.dynamic);
    }
    if (!first) put_interpreter(t, o);
    out_str(o, "</library-list-svr4>\n");
}
