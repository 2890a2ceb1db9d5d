#include "why/lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OBJECTS_MAX 256
#define REGIONS_MAX 4096
#define DEPTH_MAX 32 /* of namespaces and classes */

/* An ELF file, opened once, and its debug information: its own, or that of the file that its build id names. */
struct object {
    char path[256];
    int fd, debug_fd;
    Elf *elf, *debug_elf;
    Dwarf *dwarf;
};

struct lines {
    struct target *target;
    struct object objects[OBJECTS_MAX];
    size_t n;
    struct memory_region *regions;
    size_t n_regions;
};

struct lines *lines_open(struct target *t) {
    struct lines *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    elf_version(EV_CURRENT);
    l->target = t;
    l->regions = calloc(REGIONS_MAX, sizeof *l->regions);
    if (l->regions) return l;
    free(l);
    return NULL;
}

void lines_close(struct lines *l) {
    if (!l) return;
    for (size_t i = 0; i < l->n; i++) {
        struct object *o = &l->objects[i];
        if (o->dwarf) dwarf_end(o->dwarf);
        if (o->debug_elf) elf_end(o->debug_elf);
        if (o->elf) elf_end(o->elf);
        if (o->debug_fd >= 0) close(o->debug_fd);
        if (o->fd >= 0) close(o->fd);
    }
    free(l->regions);
    free(l);
}

/* ---- files ---- */

static size_t build_id(Elf *elf, const uint8_t **id) {
    size_t n_headers = 0;
    elf_getphdrnum(elf, &n_headers);
    for (size_t i = 0; i < n_headers; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_NOTE) continue;
        Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_NHDR);
        GElf_Nhdr note;
        size_t name, desc;
        for (size_t at = 0; data && (at = gelf_getnote(data, at, &note, &name, &desc)) > 0;) {
            if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4) continue;
            *id = (const uint8_t *)data->d_buf + desc;
            return note.n_descsz;
        }
    }
    return 0;
}

static int open_debug_file(Elf *elf) {
    const uint8_t *id = NULL;
    size_t n = build_id(elf, &id), at;
    char path[256] = "/usr/lib/debug/.build-id/";
    if (n < 2 || n > 64) return -1;
    at = strlen(path);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(path + at, sizeof path - at, i == 1 ? "/%02x" : "%02x", id[i]);
    snprintf(path + at, sizeof path - at, ".debug");
    return open(path, O_RDONLY | O_CLOEXEC);
}

static bool has_lines(Dwarf *d) {
    Dwarf_Off next;
    size_t head;
    return d && dwarf_nextcu(d, 0, &next, &head, NULL, NULL, NULL) == 0;
}

static void open_object(struct lines *l, struct object *o, const char *path) {
    *o = (struct object){.fd = -1, .debug_fd = -1};
    snprintf(o->path, sizeof o->path, "%s", path);
    o->fd = l->target->ops->open_file(l->target, path);
    if (o->fd < 0) return;
    o->elf = elf_begin(o->fd, ELF_C_READ_MMAP, NULL);
    if (!o->elf || elf_kind(o->elf) != ELF_K_ELF) return;
    o->dwarf = dwarf_begin_elf(o->elf, DWARF_C_READ, NULL);
    if (has_lines(o->dwarf)) return;
    if (o->dwarf) dwarf_end(o->dwarf);
    o->dwarf = NULL;
    o->debug_fd = open_debug_file(o->elf);
    if (o->debug_fd < 0) return;
    o->debug_elf = elf_begin(o->debug_fd, ELF_C_READ_MMAP, NULL);
    if (o->debug_elf) o->dwarf = dwarf_begin_elf(o->debug_elf, DWARF_C_READ, NULL);
}

static struct object *object_at(struct lines *l, const char *path) {
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->objects[i].path, path) == 0) return &l->objects[i];
    if (l->n == OBJECTS_MAX) return NULL;
    open_object(l, &l->objects[l->n], path);
    return &l->objects[l->n++];
}

/* ---- addresses ---- */

static const struct memory_region *known_region(const struct lines *l, uint64_t pc) {
    for (size_t i = 0; i < l->n_regions; i++)
        if (pc >= l->regions[i].start && pc < l->regions[i].end) return &l->regions[i];
    return NULL;
}

static const struct memory_region *region_of(struct lines *l, uint64_t pc) {
    const struct memory_region *r = known_region(l, pc);
    if (r && r->name[0] == '/') return r;
    l->n_regions = l->target->ops->regions(l->target, l->regions, REGIONS_MAX);
    return known_region(l, pc);
}

/* What the file's own tables call the address. False: the file has no such place. */
static bool to_file_address(Elf *elf, const struct memory_region *r, uint64_t at, uint64_t *out) {
    uint64_t offset = at - r->start + r->offset;
    size_t n = 0;
    elf_getphdrnum(elf, &n);
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD) continue;
        if (offset < ph.p_offset || offset - ph.p_offset >= ph.p_filesz) continue;
        *out = offset - ph.p_offset + ph.p_vaddr;
        return true;
    }
    return false;
}

/* ---- symbols ---- */

/* Calls `each` for the symbols of a file until it says that it has enough. */
static void for_symbols(Elf *elf, bool (*each)(void *arg, const GElf_Sym *, const char *name), void *arg) {
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr head;
        if (!gelf_getshdr(section, &head) || (head.sh_type != SHT_SYMTAB && head.sh_type != SHT_DYNSYM)) continue;
        Elf_Data *data = elf_getdata(section, NULL);
        size_t n = head.sh_entsize ? head.sh_size / head.sh_entsize : 0;
        for (size_t i = 0; data && i < n; i++) {
            GElf_Sym s;
            if (gelf_getsym(data, (int)i, &s) && each(arg, &s, elf_strptr(elf, head.sh_link, s.st_name))) return;
        }
    }
}

struct function_search {
    uint64_t at, best;
    const char *name; /* NULL: none yet */
};

static bool look_for_function(void *arg, const GElf_Sym *s, const char *name) {
    struct function_search *f = arg;
    if (GELF_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF || s->st_value > f->at) return false;
    if (s->st_size && f->at - s->st_value >= s->st_size) return false;
    if (!name || !name[0] || s->st_value < f->best) return false;
    f->best = s->st_value;
    f->name = name;
    return false;
}

static void find_function(const struct object *o, uint64_t at, struct source *out) {
    struct function_search f = {.at = at};
    for_symbols(o->elf, look_for_function, &f);
    if (!f.name && o->debug_elf) for_symbols(o->debug_elf, look_for_function, &f);
    if (!f.name) return;
    snprintf(out->function, sizeof out->function, "%s", f.name);
    out->offset = at - f.best;
}

/* What says more of a function that was declared elsewhere, or inlined; itself, if nothing does. */
static Dwarf_Die declaration(Dwarf_Die die) {
    Dwarf_Attribute a;
    Dwarf_Die next;
    static const unsigned links[] = {DW_AT_abstract_origin, DW_AT_specification};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (dwarf_attr(&die, links[i], &a) && dwarf_formref_die(&a, &next)) die = next;
    return die;
}

static bool holds_functions(Dwarf_Die *die) {
    int tag = dwarf_tag(die);
    return tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type;
}

/* The function that has code at `at`. libdw itself does not look into namespaces. */
static bool find_subprogram(Dwarf_Die *in, uint64_t at, int depth, Dwarf_Die *out) {
    Dwarf_Die die;
    for (int end = dwarf_child(in, &die); end == 0; end = dwarf_siblingof(&die, &die)) {
        *out = die;
        if (dwarf_tag(&die) == DW_TAG_subprogram && dwarf_haspc(&die, at) > 0) return true;
        if (holds_functions(&die) && depth < DEPTH_MAX && find_subprogram(&die, at, depth + 1, out)) return true;
    }
    return false;
}

/* As the source calls it, with its classes and namespaces: symbols of C++ and Rust are hard to read. */
static void name_in_source(Dwarf_Die *function, struct source *out) {
    Dwarf_Die die = declaration(*function), *scopes = NULL;
    const char *name = dwarf_diename(&die);
    int n = name ? dwarf_getscopes_die(&die, &scopes) : 0;
    size_t at = 0, cap = sizeof out->function;
    for (int i = n; i-- > 1 && at < cap;) {
        const char *outer = dwarf_diename(&scopes[i]);
        if (holds_functions(&scopes[i]) && outer) at += (size_t)snprintf(out->function + at, cap - at, "%s::", outer);
    }
    if (n > 0 && at < cap) at += (size_t)snprintf(out->function + at, cap - at, "%s", name);
    if (at >= cap) memcpy(out->function + cap - 4, "...", 4);
    free(scopes);
}

static void find_name(const struct object *o, uint64_t at, struct source *out) {
    Dwarf_Die unit, function;
    if (out->function[0] != '_' || !o->dwarf || !dwarf_addrdie(o->dwarf, at, &unit)) return;
    if (find_subprogram(&unit, at, 0, &function)) name_in_source(&function, out);
}

static void find_line(const struct object *o, uint64_t at, struct source *out) {
    Dwarf_Die unit;
    if (!o->dwarf || !dwarf_addrdie(o->dwarf, at, &unit)) return;
    Dwarf_Line *line = dwarf_getsrc_die(&unit, at);
    const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    if (!file || dwarf_lineno(line, &out->line) != 0) return;
    snprintf(out->file, sizeof out->file, "%s", file);
}

bool lines_find(struct lines *l, uint64_t pc, struct source *out) {
    *out = (struct source){0};
    const struct memory_region *r = region_of(l, pc);
    if (!r || !r->name[0]) return false;
    snprintf(out->object, sizeof out->object, "%s", r->name);
    struct object *o = r->name[0] == '/' ? object_at(l, r->name) : NULL;
    uint64_t at;
    if (!o || !o->elf || !to_file_address(o->elf, r, pc, &at)) return true;
    find_function(o, at, out);
    find_name(o, at, out);
    find_line(o, at, out);
    return true;
}

bool lines_has_bytes(struct lines *l, uint64_t addr) {
    const struct memory_region *r = region_of(l, addr);
    struct object *o = r && r->name[0] == '/' ? object_at(l, r->name) : NULL;
    uint64_t at;
    return o && o->elf && to_file_address(o->elf, r, addr, &at);
}

/* ---- variables ---- */

struct variable_search {
    const char *name;
    GElf_Sym found;
    bool is_found;
};

static bool look_for_variable(void *arg, const GElf_Sym *s, const char *name) {
    struct variable_search *v = arg;
    if (GELF_ST_TYPE(s->st_info) != STT_OBJECT || s->st_shndx == SHN_UNDEF || !s->st_size) return false;
    if (!name || strcmp(name, v->name) != 0) return false;
    v->found = *s;
    return v->is_found = true;
}

/* How far the file was moved from the addresses in its tables. */
static bool bias_of(Elf *elf, const struct memory_region *r, uint64_t *bias) {
    uint64_t at;
    if (!to_file_address(elf, r, r->start, &at)) return false;
    *bias = r->start - at;
    return true;
}

bool lines_variable(struct lines *l, const char *name, uint64_t *addr, size_t *len) {
    l->n_regions = l->target->ops->regions(l->target, l->regions, REGIONS_MAX);
    for (size_t i = 0; i < l->n_regions; i++) {
        const struct memory_region *r = &l->regions[i];
        struct object *o = r->name[0] == '/' ? object_at(l, r->name) : NULL;
        struct variable_search v = {.name = name};
        uint64_t bias;
        if (!o || !o->elf || !bias_of(o->elf, r, &bias)) continue;
        for_symbols(o->elf, look_for_variable, &v);
        if (!v.is_found && o->debug_elf) for_symbols(o->debug_elf, look_for_variable, &v);
        if (!v.is_found) continue;
        *addr = v.found.st_value + bias;
        *len = v.found.st_size;
        return true;
    }
    return false;
}
