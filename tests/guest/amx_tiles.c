/* AMX: tiles are this thread's own, through signals, calls, threads and children; a handler may change the ones that were interrupted.
 * Without leave of the kernel (arch_prctl) there are none.
 * cflags: -mamx-tile -mamx-int8 -D_GNU_SOURCE */
#include <asm/prctl.h>
#include <cpuid.h>
#include <immintrin.h>
#include <ucontext.h>

#include "guest.h"

#define ARCH_REQUEST 0x1023
#define ARCH_PERMITTED 0x1022
#define TILES 18
#define ROWS 16
#define ROW_BYTES 64

static struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} __attribute__((aligned(64))) config = {.palette = 1};

static volatile unsigned frame_bytes, frame_components, frames;

static void on_signal(int sig, siginfo_t *info, void *context) {
    uint8_t *area = (uint8_t *)((ucontext_t *)context)->uc_mcontext.fpregs;
    const uint32_t *sw = (const uint32_t *)(area + 464);
    frame_bytes = sw[4];
    frame_components = sw[2];
    frames = frames + 1;
    if (sig == SIGUSR2) { /* the first byte of the first tile */
        unsigned size, offset, c, d;
        __cpuid_count(13, TILES, size, offset, c, d);
        area[offset] += 1;
    }
    _tile_loadconfig(&config); /* a handler's tiles are its own */
    _tile_zero(0);
}

static void on_illegal(int sig, siginfo_t *info, void *context) {
    printf("without leave: signal %d\n", sig);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 5; /* tilezero */
}

static void configure(void) {
    for (int i = 0; i < 8; i++) config.row_bytes[i] = ROW_BYTES, config.rows[i] = ROWS;
    _tile_loadconfig(&config);
}

static uint32_t sum(const int32_t *out) {
    uint32_t s = 0;
    for (int i = 0; i < ROWS * ROW_BYTES / 4; i++) s = s * 31 + (uint32_t)out[i];
    return s;
}

/* Products, with something in between that may take the processor away. */
static uint32_t multiply(unsigned seed, int rounds, int sig) {
    int8_t a[ROWS * ROW_BYTES], b[ROWS * ROW_BYTES];
    int32_t out[ROWS * ROW_BYTES / 4];
    for (size_t i = 0; i < sizeof a; i++) a[i] = (int8_t)(i * seed), b[i] = (int8_t)(i + seed * 7);
    configure();
    _tile_zero(0);
    _tile_loadd(1, a, ROW_BYTES);
    _tile_loadd(2, b, ROW_BYTES);
    for (int i = 0; i < rounds; i++) {
        _tile_dpbssd(0, 1, 2);
        if (sig && i % 16 == 0) syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), sig);
        if (!sig && i % 64 == 0) sched_yield();
    }
    _tile_stored(0, out, ROW_BYTES);
    _tile_release();
    return sum(out);
}

static void *thread_main(void *seed) { return (void *)(uintptr_t)multiply((unsigned)(uintptr_t)seed, 20000, 0); }

int main(int argc, char **argv) { /* with an argument: executed by the other one */
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 24 & 1)) {
        printf("no AMX here\n");
        return 77;
    }
    handle(SIGILL, on_illegal, 0);
    configure();
    _tile_zero(0);
    _tile_release();
    uint64_t permitted = 0;
    int asked = (int)syscall(SYS_arch_prctl, ARCH_PERMITTED, &permitted);
    printf("at first %d: %lx\n", asked, permitted);
    if (syscall(SYS_arch_prctl, ARCH_REQUEST, TILES)) {
        printf("no leave to use AMX\n");
        return 77;
    }
    syscall(SYS_arch_prctl, ARCH_PERMITTED, &permitted);
    printf("then: %lx\n", permitted);
    if (argc > 1) return 0;
    handle(SIGUSR1, on_signal, 0);
    handle(SIGUSR2, on_signal, 0);

    printf("alone: %08x\n", multiply(3, 100, 0));
    printf("with signals: %08x", multiply(3, 100, SIGUSR1));
    printf(", frames of %u bytes, components %x, %u\n", frame_bytes, frame_components, frames);
    printf("changed by handlers: %08x\n", multiply(3, 100, SIGUSR2));

    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, thread_main, (void *)(i + 1));
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        printf("thread %d: %08x\n", i, (unsigned)(uintptr_t)result);
    }

    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        printf("child: %08x\n", multiply(5, 300, SIGUSR1));
        fflush(stdout);
        execl("/proc/self/exe", "amx_tiles", "again", (char *)NULL);
        _exit(1);
    }
    printf("%s\n", wait_text(pid));
    return finish();
}
