#include "sphere/frozen.h"

#include <linux/mman.h>

#include "inproc/arena.h"
#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/gate.h"

#define FROZEN 16 /* pages at once; others change under the program */

bool frozen_any;

static struct frozen {
    struct shared_at at; /* object 0: free */
    uint8_t *live;       /* where the runtime sees the file */
} frozen[FROZEN];

static struct frozen *now; /* the one that views are changed for */
static uint8_t contents[PAGE_SIZE];

static struct frozen *find(struct shared_at at) {
    for (int i = 0; i < FROZEN; i++)
        if (frozen[i].at.object == at.object && frozen[i].at.page == at.page) return &frozen[i];
    return NULL;
}

static bool duplicate(const void *from, const void *to) {
    return SYS(mremap, from, 0, PAGE_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == (long)to;
}

static void freeze_view(const struct mapping *m, gaddr addr) {
    long got = SYS(mmap, addr, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (got != (long)addr) return;
    memcpy((void *)addr, contents, PAGE_SIZE);
    SYS(mprotect, addr, PAGE_SIZE, aspace_host_prot((int)m->prot));
}

static void show_file(const struct mapping *m, gaddr addr) {
    CHECK(duplicate(now->live, (const void *)addr));
    SYS(mprotect, addr, PAGE_SIZE, aspace_host_prot((int)m->prot));
}

void frozen_make(struct shared_at at) {
    gaddr addr = shared_address_of(at);
    struct frozen *f = addr ? find((struct shared_at){0}) : NULL;
    if (!f) return;
    if (!f->live) f->live = arena_reserve(PAGE_SIZE);
    if (!f->live || !duplicate((const void *)addr, f->live)) return;
    if (guest_copy(contents, f->live, PAGE_SIZE) != 0) return;
    f->at = at;
    frozen_any = true;
    shared_each_view(at, freeze_view);
}

void frozen_end(struct shared_at at) {
    struct frozen *f = find(at);
    if (!f) return;
    now = f;
    shared_each_view(at, show_file);
    f->at = (struct shared_at){0};
    frozen_any = false;
    for (int i = 0; i < FROZEN; i++) frozen_any |= frozen[i].at.object != 0;
}

void frozen_end_all(void) {
    for (int i = 0; i < FROZEN; i++)
        if (frozen[i].at.object) frozen_end(frozen[i].at);
}
