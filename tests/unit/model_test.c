// The system-call table: complete, right about names and numbers, and its row engine.
// link: src/inproc/fmt.c src/sphere/sys/bpf.c src/sphere/sys/ioctl.c src/sphere/sys/ptrace_model.c
// clang-format off
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <string.h>

/* The special functions are not part of this test: declared weak, they are simply absent. */
#include "sphere/gate.h"
#define SYSCALL_NEW SYSCALL
#define SYSCALL(nr, name, does, flags, special, ...) extern gate_fn special __attribute__((weak));
#include "sphere/sys/model.def"
#undef SYSCALL
#undef SYSCALL_NEW

#include "../../src/sphere/sys/model.c"

/* ---- stand-ins ---- */

static gaddr unreadable = 0x1000; /* everything below */

gaddr shared_lowest, shared_highest;
void shared_hold(gaddr start, size_t len) {}

long guest_copy(void *to, const void *from, size_t n) {
    if ((gaddr)from < unreadable || (gaddr)from > 0x7ffffffff000 - n) return (long)n;
    memcpy(to, from, n);
    return 0;
}

uint64_t code_watch_protected = 1;
static struct {
    gaddr start;
    size_t len;
} seen[64];
static int n_seen, n_anywhere;

void code_watch_before_kernel_write(gaddr start, size_t len) {
    assert_true(n_seen < 64);
    seen[n_seen].start = start;
    seen[n_seen++].len = len;
}
void code_watch_before_any_kernel_write(void) { n_anywhere++; }
bool aspace_find(gaddr addr, struct mapping *out) { return false; }

static void call(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5) {
    const uint64_t a[6] = {a0, a1, a2, a3, a4, a5};
    n_seen = n_anywhere = 0;
    model_before_kernel_write(nr, a);
}

static void expect_range(gaddr start, size_t len) {
    for (int i = 0; i < n_seen; i++)
        if (seen[i].start == start && seen[i].len == len) return;
    for (int i = 0; i < n_seen; i++) print_error("seen: %#lx, %zu\n", seen[i].start, seen[i].len);
    fail_msg("no write of %zu bytes at %#lx", len, start);
}

static void expect_nothing(void) {
    assert_int_equal(n_seen, 0);
    assert_int_equal(n_anywhere, 0);
}

/* ---- the table ---- */

static void test_header_is_covered(void **state) {
    FILE *f = fopen("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "r");
    if (!f) f = fopen("/usr/include/asm/unistd_64.h", "r");
    if (!f) skip();
    char line[256], name[128];
    int nr, rows = 0;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "#define __NR_%127s %d", name, &nr) == 2) {
            assert_in_range(nr, 0, MODEL_CALLS - 1);
            assert_string_equal(model_rows[nr].name, name);
            rows++;
        }
    fclose(f);
    assert_true(rows > 350);
}

static void test_no_number_twice(void **state) {
    static const int numbers[] = {
#define SYSCALL_NEW SYSCALL
#define SYSCALL(nr, ...) nr,
#include "sphere/sys/model.def"
#undef SYSCALL
    };
    for (size_t i = 1; i < ARRAY_LEN(numbers); i++) assert_true(numbers[i] > numbers[i - 1]);
    assert_true(ARRAY_LEN(numbers) > 370);
}

static void test_rows_are_filled(void **state) {
    for (int nr = 0; nr < MODEL_CALLS; nr++) {
        const struct call_row *r = &model_rows[nr];
        assert_int_equal(r->name[0] != 0, r->does != DOES_UNKNOWN);
        if (nr <= 336 || (nr >= 424 && nr <= 470)) assert_true(r->does != DOES_UNKNOWN);
        assert_null(memchr(r->name, 0, sizeof r->name) ? NULL : r->name);
        for (int i = 0; i < MODEL_OUTS; i++) {
            const struct out *o = &r->out[i];
            assert_true(o->ptr < 6 && o->count < 6);
            if (o->kind == OUT_OBJECT) assert_in_range(o->size, 1, 1024);
            if (o->kind == OUT_IRREGULAR) assert_non_null(irregular[o->size]);
            if (o->kind == OUT_END && i + 1 < MODEL_OUTS) assert_int_equal(r->out[i + 1].kind, OUT_END);
        }
    }
}

static void test_decisions(void **state) {
    assert_int_equal(model_rows[__NR_mmap].does, DOES_REEXEC);
    assert_int_equal(model_rows[__NR_read].does, DOES_EMULATE);
    assert_int_equal(model_rows[__NR_rseq].does, DOES_REFUSE);
    assert_int_equal(model_rows[__NR_io_uring_setup].does, DOES_REFUSE);
    assert_true(model_rows[__NR_futex].flags & CALL_BLOCKS);
    assert_false(model_rows[__NR_getpid].flags & CALL_BLOCKS);
}

/* ---- the row engine ---- */

static void test_regular(void **state) {
    call(__NR_read, 3, 0x5000, 100, 0, 0, 0);
    expect_range(0x5000, 100);
    call(__NR_fstat, 3, 0x5000, 0, 0, 0, 0);
    expect_range(0x5000, 144);
    call(__NR_poll, 0x5000, 3, 0, 0, 0, 0);
    expect_range(0x5000, 24);
    call(__NR_epoll_wait, 3, 0x5000, 10, 0, 0, 0);
    expect_range(0x5000, 120);
    call(__NR_select, 65, 0x5000, 0x6000, 0, 0x7000, 0);
    assert_int_equal(n_seen, 3);
    expect_range(0x5000, 16);
    expect_range(0x6000, 16);
    expect_range(0x7000, 16);
    call(__NR_wait4, 1, 0x5000, 0, 0x6000, 0, 0);
    expect_range(0x5000, 4);
    expect_range(0x6000, 144);
    call(__NR_getcwd, 0x5000, UINT64_MAX, 0, 0, 0, 0); /* wraps: up to the end */
    assert_int_equal(n_seen, 1);
    assert_true(seen[0].start == 0x5000 && seen[0].start + seen[0].len > seen[0].start);
    call(__NR_read, 3, 0, 100, 0, 0, 0);
    expect_nothing();
    call(__NR_write, 1, 0x5000, 100, 0, 0, 0);
    expect_nothing();
}

static void test_value_result(void **state) {
    uint32_t len = 28;
    call(__NR_recvfrom, 3, 0x5000, 100, 0, 0x6000, (uint64_t)&len);
    assert_int_equal(n_seen, 3);
    expect_range(0x5000, 100);
    expect_range(0x6000, 28);
    expect_range((gaddr)&len, 4);
    call(__NR_recvfrom, 3, 0x5000, 100, 0, 0, 0);
    assert_int_equal(n_seen, 1);
    call(__NR_getsockname, 3, 0x5000, 0x10, 0, 0, 0); /* a wild length pointer: the call will fail */
    expect_nothing();
}

static void test_vectors(void **state) {
    uint64_t iov[4] = {0x5000, 10, 0x6000, 20};
    call(__NR_readv, 3, (uint64_t)iov, 2, 0, 0, 0);
    assert_int_equal(n_seen, 2);
    expect_range(0x6000, 20);
    call(__NR_readv, 3, 8, 1u << 30, 0, 0, 0);
    expect_nothing();
    struct mmsghdr_raw m[2] = {0};
    for (int i = 0; i < 2; i++)
        m[i].hdr = (struct msghdr_raw){0x7000 + 64 * i, 16, 0, (uint64_t)iov, 2, 0x8000, 40, 0, 0};
    call(__NR_recvmsg, 3, (uint64_t)&m[0], 0, 0, 0, 0);
    assert_int_equal(n_seen, 7);
    expect_range(0x7000, 16);
    expect_range(0x8000, 40);
    expect_range((gaddr)&m[0].hdr.name_len, 4);
    expect_range((gaddr)&m[0].hdr.control_len, 8);
    expect_range((gaddr)&m[0].hdr.flags, 4);
    call(__NR_recvmmsg, 3, (uint64_t)m, 2, 0, 0x9000, 0);
    expect_range(0x7040, 16);
    expect_range((gaddr)&m[1].len, 4);
    expect_range(0x9000, 16);
}

static void test_after_the_call(void **state) {
    uint64_t iov[4] = {0x5000, 10, 0x6000, 20};
    const uint64_t a[6] = {3, (uint64_t)iov, 2, 0, 0, 0};
    struct writes w = {.range = lift, .anywhere = lift_all, .is_done = true, .ret = 14};
    n_seen = 0;
    model_writes(__NR_readv, a, &w);
    assert_int_equal(n_seen, 2);
    expect_range(0x6000, 4);
    w.ret = -11;
    n_seen = 0;
    model_writes(__NR_readv, a, &w);
    assert_int_equal(n_seen, 0);
}

static void after(long ret, uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4) {
    const uint64_t a[6] = {a0, a1, a2, a3, a4};
    struct writes w = {.range = lift, .anywhere = lift_all, .is_done = true, .ret = ret};
    n_seen = n_anywhere = 0;
    model_writes(nr, a, &w);
}

static void test_failed_calls(void **state) {
    after(-ENOENT, __NR_stat, 0x4000, 0x5000, 0, 0, 0);
    expect_nothing();
    after(-EINTR, __NR_poll, 0x5000, 2, 0, 0, 0); /* revents are written all the same */
    expect_range(0x5000, 16);
    after(-EINTR, __NR_select, 1, 0, 0, 0, 0x5000);
    expect_range(0x5000, 16);
    after(-EFAULT, __NR_read, 3, 0x5000, 100, 0, 0); /* the kernel got half way */
    expect_range(0x5000, 100);
    after(-EINTR, __NR_nanosleep, 0x4000, 0x5000, 0, 0, 0);
    expect_range(0x5000, 16);
    after(0, __NR_nanosleep, 0x4000, 0x5000, 0, 0, 0);
    expect_nothing();
    after(-EINTR, __NR_clock_nanosleep, 1, 1 /* TIMER_ABSTIME */, 0x4000, 0x5000, 0);
    expect_nothing();
    after(-EINTR, __NR_clock_nanosleep, 1, 0, 0x4000, 0x5000, 0);
    expect_range(0x5000, 16);
    after(-ECHILD, __NR_waitid, 1, 0, 0x5000, 0, 0);
    expect_range(0x5000, 128);
    after(0, __NR_wait4, 1, 0x5000, 1, 0, 0);
    expect_nothing();
    after(-EOPNOTSUPP, __NR_socketpair, 2, 1, 0, 0x5000, 0);
    expect_range(0x5000, 8);
}

static void test_exact_after_the_call(void **state) {
    after(0, __NR_futex, 0x5000, FUTEX_WAIT, 0, 0, 0x6000);
    expect_nothing();
    after(0, __NR_futex, 0x5000, FUTEX_LOCK_PI, 0, 0, 0);
    expect_range(0x5000, 4);
    after(0, __NR_madvise, 0x5000, 4096, MADV_POPULATE_WRITE, 0, 0);
    expect_nothing();
    after(7, __NR_clone, CLONE_VM, 0x4000, 0x5000, 0x6000, 0);
    expect_nothing();
    after(7, __NR_clone, CLONE_VM | CLONE_PARENT_SETTID, 0x4000, 0x5000, 0x6000, 0);
    assert_int_equal(n_seen, 1);
    expect_range(0x5000, 4);
    after(2, __NR_epoll_wait, 3, 0x5000, 10, 0, 0);
    expect_range(0x5000, 24);
    after(5, __NR_msgrcv, 3, 0x5000, 100, 0, 0);
    expect_range(0x5000, 13);
    uint32_t len = 16; /* as the kernel left it */
    after(4, __NR_accept, 3, 0x5000, (uint64_t)&len, 0, 0);
    expect_range(0x5000, 16);
}

static void test_does(void **state) {
    const uint64_t name[6] = {PR_SET_NAME}, filter[6] = {PR_SET_SECCOMP}, fs[6] = {ARCH_SET_FS},
                   cpuid[6] = {ARCH_GET_CPUID};
    assert_int_equal(model_does(__NR_prctl, name), DOES_EMULATE);
    assert_int_equal(model_does(__NR_prctl, filter), DOES_REEXEC);
    assert_int_equal(model_does(__NR_arch_prctl, fs), DOES_REEXEC);
    assert_int_equal(model_does(__NR_arch_prctl, cpuid), DOES_EMULATE);
    assert_int_equal(model_does(__NR_mmap, name), DOES_REEXEC);
    assert_int_equal(model_does(UINT64_MAX, name), DOES_UNKNOWN);
}

static void test_irregular(void **state) {
    call(__NR_futex, 0x5000, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, 0, 0x6000, 0);
    expect_nothing();
    call(__NR_futex, 0x5000, FUTEX_WAIT, 0, 0, 0x6000, 0);
    expect_range(0x5000, 4);
    call(__NR_futex, 0x5000, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, 0x6000, 0);
    expect_range(0x6000, 4);
    call(__NR_fcntl, 3, F_GETLK, 0x5000, 0, 0, 0);
    expect_range(0x5000, 32);
    call(__NR_fcntl, 3, F_GETFL, 0x5000, 0, 0, 0);
    expect_nothing();
    call(__NR_prctl, PR_GET_NAME, 0x5000, 0, 0, 0, 0);
    expect_range(0x5000, 16);
    call(__NR_prctl, 0x12345678, 0x5000, 0, 0, 0, 0);
    assert_int_equal(n_anywhere, 1);
    call(__NR_ioctl, 0, 0x5401 /* TCGETS */, 0x5000, 0, 0, 0);
    expect_range(0x5000, 36);
    call(__NR_ioctl, 0, 0x541b /* FIONREAD */, 0x5000, 0, 0, 0);
    expect_range(0x5000, 4);
    call(__NR_ioctl, 0, 0x5421 /* FIONBIO */, 0x5000, 0, 0, 0);
    expect_nothing();
    call(__NR_ioctl, 0, 0x5331 /* CDROM_GET_CAPABILITY */, 0x5000, 0, 0, 0);
    expect_nothing();
    call(__NR_ioctl, 0, 0x80041284 /* BLKGETZONESZ */, 0x5000, 0, 0, 0);
    expect_range(0x5000, 4);
    uint32_t mapper[4] = {4, 0, 0, 312}; /* struct dm_ioctl begins with a version and its size */
    call(__NR_ioctl, 0, 0xc138fd00 /* DM_VERSION */, (uint64_t)mapper, 0, 0, 0);
    expect_range((uint64_t)mapper, 312);
    uint32_t settings[12] = {0x4c, 0, 0, 3u << 24}; /* ETHTOOL_GLINKSETTINGS: three masks of three words behind it */
    uint64_t ifreq[5] = {0, 0, (uint64_t)settings};
    call(__NR_ioctl, 0, 0x8946 /* SIOCETHTOOL */, (uint64_t)ifreq, 0, 0, 0);
    expect_range((uint64_t)settings, 48 + 36);
    call(__NR_ioctl, 0, 0x12345678, 0x5000, 0, 0, 0);
    assert_int_equal(n_anywhere, 1);
}

static void test_unknown_is_anywhere(void **state) {
    call(400, 0x5000, 0, 0, 0, 0, 0);
    assert_int_equal(n_anywhere, 1);
    call(100000, 0x5000, 0, 0, 0, 0, 0);
    assert_int_equal(n_anywhere, 1);
    call(UINT64_MAX, 0x5000, 0, 0, 0, 0, 0);
    assert_int_equal(n_anywhere, 1);
}

/* Any arguments at all: nothing but ranges come out. */
static void test_hostile_arguments(void **state) {
    static const uint64_t odd[] = {
        0, 1, 8, 0xfff, 0x7ffffffffff8, 0xffff800000000000, UINT64_MAX, UINT64_MAX - 7, 1ull << 63};
    uint64_t seed = 1;
    for (int round = 0; round < 200; round++)
        for (uint64_t nr = 0; nr < MODEL_CALLS; nr++) {
            if (nr == __NR_exit) continue; /* asks the kernel about this thread */
            uint64_t a[6];
            for (int i = 0; i < 6; i++) {
                seed = seed * 6364136223846793005ull + 1442695040888963407ull;
                a[i] = odd[(seed >> 33) % ARRAY_LEN(odd)];
            }
            call(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_is_covered),
        cmocka_unit_test(test_no_number_twice),
        cmocka_unit_test(test_rows_are_filled),
        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_regular),
        cmocka_unit_test(test_value_result),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_after_the_call),
        cmocka_unit_test(test_irregular),
        cmocka_unit_test(test_unknown_is_anywhere),
        cmocka_unit_test(test_hostile_arguments),
        cmocka_unit_test(test_failed_calls),
        cmocka_unit_test(test_exact_after_the_call),
        cmocka_unit_test(test_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
