/* fnstenv and fnsave store where the processor last was with x87 work, and some processors forget that at every switch of
 * threads. A replay has to show what the recording showed. */
#include "guest.h"

#include <sched.h>

static void print(const char *name, const uint32_t *env, int n) {
    printf("%s:", name);
    for (int i = 0; i < n; i++) printf(" %08x", env[i]);
    printf("\n");
}

int main(void) {
    uint32_t env[7], state[27];
    uint16_t small[7];
    double one = 1.0;
    for (int i = 0; i < 3; i++) {
        __asm__ volatile("fninit; fldl %1; fnstenv %0; fninit" : "=m"(env) : "m"(one));
        print("at once", env, 7);
        __asm__ volatile("fldl %0" : : "m"(one));
        for (int k = 0; k < i * 20; k++) sched_yield();
        sleep_ms(i);
        __asm__ volatile("fnstenv %0" : "=m"(env));
        print("later", env, 7);
        __asm__ volatile("data16 fnstenv %0" : "=m"(small));
        printf("short: %04x %04x\n", small[3], small[5]);
        __asm__ volatile("fnsave %0" : "=m"(state));
        print("saved", state, 7);
    }
    return 0;
}
