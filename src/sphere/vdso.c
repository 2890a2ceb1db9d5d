#include "sphere/vdso.h"

#include <elf.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

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

gaddr vdso_move(const uint64_t *auxv) {
    uint64_t ehdr = 0;
    for (; auxv[0]; auxv += 2)
        if (auxv[0] == AT_SYSINFO_EHDR) ehdr = auxv[1];
    struct piece p[8];
    int n = ehdr ? find_pieces(p, 8) : 0;
    if (n < 2 || p[n - 1].end - p[0].start > VDSO_AREA) return 0;
    gaddr result = 0;
    for (int i = 0; i < n; i++) {
        uint64_t to = VDSO_BASE + (p[i].start - p[0].start), len = p[i].end - p[i].start;
        if (SYS(mremap, p[i].start, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) != (long)to) return 0;
        aspace_adopt(to, len, p[i].code ? PROT_READ | PROT_EXEC : PROT_READ, p[i].code ? "[vdso]" : "[vvar]");
        if (p[i].code) result = to;
    }
    return result;
}
