/* bpf(): what it writes of maps (by element, by processor, in batches) and of programs (the verifier's words, what it says of them),
 * and, asked for, a map in memory, which may be refused. Nothing is attached. */
#include "guest.h"
#include <linux/bpf.h>
#include <sys/mman.h>

static long bpf(int cmd, union bpf_attr *attr) { return syscall(SYS_bpf, cmd, attr, sizeof *attr); }

static int map_of(int type, int key, int value, int flags) {
    union bpf_attr a = {.map_type = type, .key_size = key, .value_size = value, .max_entries = 8, .map_flags = flags};
    return bpf(BPF_MAP_CREATE, &a);
}

static long element(int cmd, int fd, void *key, void *value) {
    union bpf_attr a = {.map_fd = fd, .key = (uintptr_t)key, .value = (uintptr_t)value};
    return bpf(cmd, &a);
}

static void hash(void) {
    int fd = map_of(BPF_MAP_TYPE_HASH, 4, 8, 0);
    uint32_t key = 99, none = 0, next[2] = {1, 2};
    uint64_t value = 1234567, got[2] = {3, 4};
    CHECK(fd >= 0 && element(BPF_MAP_UPDATE_ELEM, fd, &key, &value) == 0);
    CHECK(element(BPF_MAP_LOOKUP_ELEM, fd, &key, got) == 0);
    printf("value %lu, behind it %lu\n", (unsigned long)got[0], (unsigned long)got[1]);
    CHECK(element(BPF_MAP_LOOKUP_ELEM, fd, &none, got) == -1 && errno == ENOENT);
    CHECK(element(BPF_MAP_GET_NEXT_KEY, fd, &none, next) == 0);
    printf("key %u, behind it %u\n", next[0], next[1]);
    uint32_t keys[8] = {0}, place[4] = {0};
    uint64_t values[8] = {0};
    union bpf_attr a = {.batch = {.out_batch = (uintptr_t)place,
                                  .keys = (uintptr_t)keys,
                                  .values = (uintptr_t)values,
                                  .count = 8,
                                  .map_fd = fd}};
    long ret = bpf(BPF_MAP_LOOKUP_BATCH, &a);
    printf("batch %ld: %u, key %u, value %lu\n", ret, a.batch.count, keys[0], (unsigned long)values[0]);
    close(fd);
}

static void by_processor(void) {
    static uint64_t values[1024], got[1024];
    int fd = map_of(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 0);
    uint32_t key = 3;
    for (int i = 0; i < 1024; i++) values[i] = 1000 + i;
    CHECK(fd >= 0 && element(BPF_MAP_UPDATE_ELEM, fd, &key, values) == 0);
    CHECK(element(BPF_MAP_LOOKUP_ELEM, fd, &key, got) == 0);
    printf("of the first processor: %lu\n", (unsigned long)got[0]);
    close(fd);
}

static void program(void) {
    struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 7}, {.code = BPF_JMP | BPF_EXIT}};
    struct bpf_insn bad[] = {{.code = BPF_JMP | BPF_EXIT}};
    static char words[4096];
    union bpf_attr a = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
                        .insns = (uintptr_t)bad,
                        .insn_cnt = 1,
                        .license = (uintptr_t) "GPL",
                        .log_buf = (uintptr_t)words,
                        .log_size = sizeof words,
                        .log_level = 1};
    CHECK(bpf(BPF_PROG_LOAD, &a) == -1);
    printf("refused: %d\n", strstr(words, "R0 !read_ok") != NULL);
    a.insns = (uintptr_t)code;
    a.insn_cnt = 2;
    int fd = bpf(BPF_PROG_LOAD, &a);
    CHECK(fd >= 0);
    struct bpf_insn loaded[8];
    memset(loaded, 0, sizeof loaded);
    struct bpf_prog_info info = {.xlated_prog_len = sizeof loaded, .xlated_prog_insns = (uintptr_t)loaded};
    union bpf_attr i = {.info = {.bpf_fd = fd, .info_len = sizeof info, .info = (uintptr_t)&info}};
    CHECK(bpf(BPF_OBJ_GET_INFO_BY_FD, &i) == 0);
    printf("type %u, %u bytes, first sets %d\n", info.type, info.xlated_prog_len, loaded[0].imm);
    char packet[64] = {0}, out[128] = {0};
    union bpf_attr t = {.test = {.prog_fd = fd,
                                 .data_in = (uintptr_t)packet,
                                 .data_size_in = sizeof packet,
                                 .data_out = (uintptr_t)out,
                                 .data_size_out = sizeof out,
                                 .repeat = 1}};
    long ret = bpf(BPF_PROG_TEST_RUN, &t);
    printf("run: %ld, returns %u, %u bytes\n", ret, t.test.retval, t.test.data_size_out);
    close(fd);
}

/* Memory that the kernel changes by itself: a recording says no. */
static void in_memory(void) {
    int fd = map_of(BPF_MAP_TYPE_ARRAY, 4, 8, BPF_F_MMAPABLE);
    void *p = fd >= 0 ? mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    CHECK(p == MAP_FAILED || *(volatile int *)p == 0);
}

int main(int argc, char **argv) {
    union bpf_attr a = {.map_type = BPF_MAP_TYPE_HASH, .key_size = 4, .value_size = 4, .max_entries = 1};
    if (bpf(BPF_MAP_CREATE, &a) < 0) return 77;
    hash();
    by_processor();
    program();
    if (argc > 1) in_memory();
    return finish();
}
