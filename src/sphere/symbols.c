#include "sphere/symbols.h"

#include <elf.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "inproc/fmt.h"
#include "inproc/sys.h"
#include "sphere/thread.h"

static const Elf64_Sym *symbols;
static size_t n_symbols;
static const char *names;
static uint64_t names_size;

static const uint8_t *map_own_file(uint64_t *size) {
    char path[40];
    fmt_into(path, sizeof path, "/proc/self/fd/%d", thread_self()->files->rt_fd);
    long fd = SYS(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    long len = SYS(lseek, fd, 0, 2 /* SEEK_END */);
    long at = len > 0 ? SYS(mmap, 0, len, PROT_READ, MAP_PRIVATE, fd, 0) : -ENODATA;
    SYS(close, fd);
    if (sys_failed(at)) return NULL;
    *size = (uint64_t)len;
    return (const uint8_t *)at;
}

static void load(void) {
    static bool tried;
    uint64_t size = 0;
    if (tried) return;
    tried = true;
    const uint8_t *file = map_own_file(&size);
    const Elf64_Ehdr *eh = (const Elf64_Ehdr *)file;
    if (!file || size < sizeof *eh || eh->e_shoff > size || (size - eh->e_shoff) / sizeof(Elf64_Shdr) < eh->e_shnum)
        return;
    const Elf64_Shdr *sh = (const Elf64_Shdr *)(file + eh->e_shoff);
    for (int i = 0; i < eh->e_shnum; i++) {
        if (sh[i].sh_type != SHT_SYMTAB || sh[i].sh_link >= eh->e_shnum) continue;
        const Elf64_Shdr *str = &sh[sh[i].sh_link];
        if (sh[i].sh_offset > size || size - sh[i].sh_offset < sh[i].sh_size) return;
        if (str->sh_offset > size || size - str->sh_offset < str->sh_size) return;
        symbols = (const Elf64_Sym *)(file + sh[i].sh_offset);
        n_symbols = sh[i].sh_size / sizeof *symbols;
        names = (const char *)file + str->sh_offset;
        names_size = str->sh_size;
        return;
    }
}

/* The nearest one below: assembly has labels without a size. */
const char *symbols_find(uint64_t pc, uint64_t *into) {
    load();
    const Elf64_Sym *best = NULL;
    for (size_t i = 0; i < n_symbols; i++) {
        const Elf64_Sym *s = &symbols[i];
        int type = ELF64_ST_TYPE(s->st_info);
        if ((type != STT_FUNC && type != STT_NOTYPE) || s->st_shndx == SHN_UNDEF || s->st_shndx >= SHN_LORESERVE)
            continue;
        if (s->st_value > pc || s->st_name >= names_size || !names[s->st_name]) continue;
        if (s->st_size && pc - s->st_value > s->st_size) continue;
        if (!best || s->st_value > best->st_value) best = s;
    }
    if (!best) return NULL;
    *into = pc - best->st_value;
    return names + best->st_name;
}
