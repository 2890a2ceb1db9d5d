/* fnstenv and fnsave tell where the last x87 instruction is and what it touched: code that finds its own address in this way works.
 * Processors may forget it when threads change; then it is tried again. */
#include "guest.h"

static double one = 1.0;

static void look(const char *name, bool save) {
    int found = 0, lost = 0, wrong = 0;
    for (int i = 0; i < 100; i++) {
        uint32_t env[27] = {0};
        uintptr_t at;
        if (save)
            __asm__ volatile("fninit; 1: fldl %2; fnsave %0; lea 1b(%%rip), %1" : "=m"(env), "=r"(at) : "m"(one));
        else
            __asm__ volatile("fninit; 1: fldl %2; fnstenv %0; lea 1b(%%rip), %1; fninit"
                             : "=m"(env), "=r"(at)
                             : "m"(one));
        if (env[3] == (uint32_t)at && env[5] == (uint32_t)(uintptr_t)&one)
            found++;
        else if (!env[3] && !env[5])
            lost++;
        else
            wrong++;
    }
    printf("%s: found %d, something else %d\n", name, found > 0, wrong);
}

int main(void) {
    look("fnstenv", false);
    look("fnsave", true);
    return finish();
}
