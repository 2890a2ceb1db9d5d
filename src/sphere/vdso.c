#include "sphere/vdso.h"

#include <elf.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "inproc/fmt.h"
#include "inproc/layout.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/aspace.h"

#define VDSO_AREA 0x40000ul
#define VDSO_BASE (LAYOUT_LIB_END - VDSO_AREA) /* the end of the library area */

struct piece {
    uint64_t start, end;
    bool code;
};

/* [vvar...] and [vdso] of /proc/self/maps. */
static int find_pieces(struct piece *out, int cap) {
    static char text[32768];
    long fd = SYS(openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    size_t n = 0;
    for (long got; n < sizeof text - 1 && (got = SYS(read, fd, text + n, sizeof text - 1 - n)) > 0;) n += (size_t)got;
    SYS(close, fd);
    text[n] = '\0';
    int found = 0;
    for (const char *line = text; *line && found < cap;) {
        const char *end = strchr(line, '\n');
        if (!end) break;
        const char *name = end;
        while (name > line && name[-1] != ' ') name--;
        bool code = str_starts(name, "[vdso]");
        if (code || str_starts(name, "[vvar")) {
            const char *s = line;
            uint64_t lo = read_hex(&s);
            s++;
            out[found++] = (struct piece){lo, read_hex(&s), code};
        }
        line = end + 1;
    }
    return found;
}

/* The pieces lie one behind the other, the code last, where the auxiliary vector says: only their lengths are to be known, and
 * those are the same as long as the kernel runs. So the runtime behind an execve is told. */
#define PIECES_MAX 8
static uint64_t lengths[PIECES_MAX];
static int n_lengths;

static void note_lengths(const struct piece *p, int n, uint64_t ehdr) {
    for (int i = 0; i + 1 < n; i++)
        if (p[i].end != p[i + 1].start || p[i].code) return;
    if (!p[n - 1].code || p[n - 1].start != ehdr) return;
    for (int i = 0; i < n; i++) lengths[i] = p[i].end - p[i].start;
    n_lengths = n;
}

size_t vdso_to_text(char *out, size_t cap) {
    size_t at = 0;
    for (int i = 0; i < n_lengths; i++) at += fmt_into(out + at, cap - at, i ? ":%lx" : ",vdso=%lx", lengths[i]);
    return at;
}

static int told_pieces(struct piece *out, const char *text, uint64_t ehdr) {
    uint64_t below = 0;
    int n = 0;
    while (n < PIECES_MAX) {
        out[n++].end = read_hex(&text); /* the length, for now */
        if (*text++ != ':') break;
    }
    for (int i = 0; i + 1 < n; i++) below += out[i].end;
    for (int i = 0; i < n; i++) {
        out[i].start = i ? out[i - 1].end : ehdr - below;
        out[i].end += out[i].start;
        out[i].code = i == n - 1;
    }
    return n;
}

int (*vdso_clock_gettime)(int clock, int64_t out[2]);

/* The kernel's own image: its headers can be trusted. */
static uint64_t find_symbol(uint64_t base, const char *wanted) {
    const Elf64_Ehdr *eh = (const Elf64_Ehdr *)base;
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(base + eh->e_phoff);
    const Elf64_Dyn *dyn = NULL;
    for (int i = 0; i < eh->e_phnum; i++)
        if (ph[i].p_type == PT_DYNAMIC) dyn = (const Elf64_Dyn *)(base + ph[i].p_offset);
    const Elf64_Sym *symbols = NULL;
    const char *names = NULL;
    const uint32_t *hash = NULL;
    for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
        if (dyn->d_tag == DT_SYMTAB) symbols = (const Elf64_Sym *)(base + dyn->d_un.d_ptr);
        if (dyn->d_tag == DT_STRTAB) names = (const char *)(base + dyn->d_un.d_ptr);
        if (dyn->d_tag == DT_HASH) hash = (const uint32_t *)(base + dyn->d_un.d_ptr);
    }
    for (uint32_t i = 0; symbols && names && hash && i < hash[1]; i++)
        if (symbols[i].st_value && strcmp(names + symbols[i].st_name, wanted) == 0) return base + symbols[i].st_value;
    return 0;
}

gaddr vdso_move(const uint64_t *auxv, bool shown, const char *told) {
    uint64_t ehdr = 0;
    for (; auxv[0]; auxv += 2)
        if (auxv[0] == AT_SYSINFO_EHDR) ehdr = auxv[1];
    struct piece p[PIECES_MAX];
    int n = !ehdr ? 0 : told ? told_pieces(p, told, ehdr) : find_pieces(p, PIECES_MAX);
    if (n) note_lengths(p, n, ehdr);
    if (n < 2 || p[n - 1].end - p[0].start > VDSO_AREA) return 0;
    gaddr result = 0;
    for (int i = 0; i < n; i++) {
        uint64_t to = (shown ? VDSO_BASE : LAYOUT_VDSO) + (p[i].start - p[0].start), len = p[i].end - p[i].start;
        if (SYS(mremap, p[i].start, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) != (long)to) return 0;
        if (shown)
            aspace_adopt(to, len, p[i].code ? PROT_READ | PROT_EXEC : PROT_READ, p[i].code ? "[vdso]" : "[vvar]");
        if (p[i].code) result = to;
    }
    if (shown) return result;
    vdso_clock_gettime = (int (*)(int, int64_t[2]))find_symbol(result, "__vdso_clock_gettime");
    return 0;
}

extern const char vdso_image[], vdso_image_end[];

gaddr vdso_map_own(void) {
    size_t len = (size_t)(vdso_image_end - vdso_image);
    long at = aspace_mmap(VDSO_BASE, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (sys_failed(at)) return 0;
    memcpy((void *)at, vdso_image, len);
    aspace_mprotect((gaddr)at, len, PROT_READ | PROT_EXEC);
    aspace_name((gaddr)at, "[vdso]");
    return (gaddr)at;
}
