/* The name that a shared library calls itself. */
#include "rsp/soname.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS_MAX 64
#define DYNAMIC_MAX 512

static bool read_at(int fd, void *to, size_t n, uint64_t offset) {
    return offset <= INT64_MAX && pread(fd, to, n, (off_t)offset) == (ssize_t)n;
}

/* Where in the file an address is; false: nowhere. */
static bool offset_of(const Elf64_Phdr *segments, unsigned n, uint64_t addr, uint64_t *offset) {
    for (unsigned i = 0; i < n; i++)
        if (segments[i].p_type == PT_LOAD && addr - segments[i].p_vaddr < segments[i].p_filesz) {
            *offset = addr - segments[i].p_vaddr + segments[i].p_offset;
            return true;
        }
    return false;
}

static bool name_at(int fd, uint64_t offset, char *name, size_t cap) {
    ssize_t n = offset <= INT64_MAX ? pread(fd, name, cap - 1, (off_t)offset) : -1;
    name[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

static bool read_head(int fd, Elf64_Ehdr *head) {
    return read_at(fd, head, sizeof *head, 0) && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
           head->e_ident[EI_CLASS] == ELFCLASS64;
}

/* How many there are. */
static unsigned read_segments(int fd, const Elf64_Ehdr *head, Elf64_Phdr segments[SEGMENTS_MAX]) {
    unsigned n = head->e_phnum < SEGMENTS_MAX ? head->e_phnum : SEGMENTS_MAX;
    bool fine = head->e_phentsize == sizeof *segments && read_at(fd, segments, n * sizeof *segments, head->e_phoff);
    return fine ? n : 0;
}

bool elf_soname(int fd, char *name, size_t cap) {
    Elf64_Ehdr head;
    Elf64_Phdr segments[SEGMENTS_MAX];
    Elf64_Dyn dynamic[DYNAMIC_MAX];
    uint64_t strings = 0, at = 0, offset;
    bool has = false;
    name[0] = '\0';
    if (!read_head(fd, &head)) return false;
    unsigned n = read_segments(fd, &head, segments);
    for (unsigned i = 0; i < n; i++) {
        if (segments[i].p_type != PT_DYNAMIC) continue;
        uint64_t many = segments[i].p_filesz / sizeof *dynamic;
        if (many > DYNAMIC_MAX) many = DYNAMIC_MAX;
        if (!read_at(fd, dynamic, many * sizeof *dynamic, segments[i].p_offset)) return true;
        for (uint64_t d = 0; d < many && dynamic[d].d_tag != DT_NULL; d++) {
            if (dynamic[d].d_tag == DT_STRTAB) strings = dynamic[d].d_un.d_ptr;
            if (dynamic[d].d_tag == DT_SONAME) at = dynamic[d].d_un.d_val, has = true;
        }
    }
    if (has && offset_of(segments, n, strings + at, &offset)) name_at(fd, offset, name, cap);
    return true;
}

bool elf_interpreter(int fd, char *path, size_t cap) {
    Elf64_Ehdr head;
    Elf64_Phdr segments[SEGMENTS_MAX];
    if (!read_head(fd, &head)) return false;
    unsigned n = read_segments(fd, &head, segments);
    for (unsigned i = 0; i < n; i++)
        if (segments[i].p_type == PT_INTERP) return name_at(fd, segments[i].p_offset, path, cap);
    return false;
}
