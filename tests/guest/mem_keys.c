/* Protection keys: who gets one can use it (node commits no memory for WebAssembly otherwise), and who gets none is told so. */
#include "guest.h"

int main(void) {
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long key = syscall(SYS_pkey_alloc, 0, 0);
    if (key >= 0) {
        CHECK(syscall(SYS_pkey_mprotect, page, 4096, PROT_READ | PROT_WRITE, key) == 0);
        page[0] = 1;
        CHECK(syscall(SYS_pkey_free, key) == 0);
    } else {
        CHECK(errno == ENOSYS || errno == ENOSPC || errno == EINVAL);
    }
    CHECK(syscall(SYS_pkey_mprotect, page, 4096, PROT_READ | PROT_WRITE, -1) == 0);
    page[0] = 2;
    return finish();
}
