/* What bpf() writes. Memory of maps that a program would share with the kernel (mmap of a map, ring buffers) is refused (mm.c). */
#include <linux/bpf.h>
#include <linux/fcntl.h>

#include "inproc/fmt.h"
#include "inproc/str.h"
#include "inproc/sys.h"
#include "sphere/sys/model.h"

static bool is_per_cpu(uint32_t map_type) {
    return map_type == BPF_MAP_TYPE_PERCPU_HASH || map_type == BPF_MAP_TYPE_PERCPU_ARRAY ||
           map_type == BPF_MAP_TYPE_LRU_PERCPU_HASH || map_type == BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE;
}

/* Not fewer than there are: as many as the kernel's sets of them have bits. */
static uint64_t count_cpus(void) {
    uint8_t set[1024];
    long bytes = SYS(sched_getaffinity, 0, sizeof set, set);
    return bytes > 0 ? (uint64_t)bytes * 8 : sizeof set * 8;
}

struct sizes {
    uint64_t key, value;
};

static bool map_sizes(uint32_t fd, struct sizes *out) {
    struct bpf_map_info info;
    union bpf_attr attr;
    memset(&info, 0, sizeof info);
    memset(&attr, 0, sizeof attr);
    attr.info.bpf_fd = fd;
    attr.info.info_len = sizeof info;
    attr.info.info = (uint64_t)&info;
    if (SYS(bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof attr.info) < 0) return false;
    out->key = info.key_size;
    out->value = info.value_size;
    if (is_per_cpu(info.type)) out->value = (out->value + 7) / 8 * 8 * count_cpus();
    return true;
}

static void write_element(struct writes *w, const union bpf_attr *attr, bool is_key) {
    struct sizes size;
    if (map_sizes(attr->map_fd, &size)) writes_range(w, attr->value, is_key ? size.key : size.value);
}

/* The place to go on is a key, or four bytes if that is more. */
static void write_batch(struct writes *w, const union bpf_attr *attr) {
    struct sizes size;
    if (!map_sizes(attr->batch.map_fd, &size)) return;
    writes_range(w, attr->batch.out_batch, size.key < 4 ? 4 : size.key);
    writes_range(w, attr->batch.keys, attr->batch.count * size.key);
    writes_range(w, attr->batch.values, attr->batch.count * size.value);
}

#define KIND 40

/* What kind of object the descriptor is for, which only its name tells. */
static void kind_of(uint32_t fd, char kind[KIND]) {
    char path[KIND];
    fmt_into(path, sizeof path, "/proc/self/fd/%u", fd);
    long n = SYS(readlinkat, AT_FDCWD, path, kind, KIND - 1);
    kind[n > 0 ? n : 0] = '\0';
}

/* Afterwards the lengths say how much there is, which may be more than was written. */
static void write_prog_info(struct writes *w, const struct bpf_prog_info *i) {
    writes_range(w, i->jited_prog_insns, i->jited_prog_len);
    writes_range(w, i->xlated_prog_insns, i->xlated_prog_len);
    writes_range(w, i->map_ids, i->nr_map_ids * 4ull);
    writes_range(w, i->jited_ksyms, i->nr_jited_ksyms * 8ull);
    writes_range(w, i->jited_func_lens, i->nr_jited_func_lens * 4ull);
    writes_range(w, i->func_info, (uint64_t)i->nr_func_info * i->func_info_rec_size);
    writes_range(w, i->line_info, (uint64_t)i->nr_line_info * i->line_info_rec_size);
    writes_range(w, i->jited_line_info, (uint64_t)i->nr_jited_line_info * i->jited_line_info_rec_size);
    writes_range(w, i->prog_tags, i->nr_prog_tags * 8ull);
}

static void write_info(struct writes *w, const union bpf_attr *attr) {
    union {
        struct bpf_prog_info prog;
        struct bpf_btf_info btf;
        struct bpf_link_info link;
    } info;
    char kind[KIND];
    uint32_t len = attr->info.info_len;
    writes_range(w, attr->info.info, len);
    memset(&info, 0, sizeof info);
    if (!writes_read(w, &info, attr->info.info, len < sizeof info ? len : sizeof info)) return;
    kind_of(attr->info.bpf_fd, kind);
    if (strcmp(kind, "anon_inode:bpf-prog") == 0) {
        write_prog_info(w, &info.prog);
    } else if (strcmp(kind, "anon_inode:bpf_link") == 0) { /* other kinds of names of links: not known */
        bool has_name = info.link.type == BPF_LINK_TYPE_RAW_TRACEPOINT || info.link.type == BPF_LINK_TYPE_ITER;
        if (has_name) writes_range(w, info.link.raw_tracepoint.tp_name, info.link.raw_tracepoint.tp_name_len);
    } else if (strcmp(kind, "anon_inode:btf") == 0) {
        writes_range(w, info.btf.btf, info.btf.btf_size);
        writes_range(w, info.btf.name, info.btf.name_len);
    }
}

static void write_query(struct writes *w, gaddr at, const union bpf_attr *attr, uint64_t size) {
    uint64_t more[3] = {0}; /* prog_attach_flags, link_ids, link_attach_flags: younger than some headers */
    uint64_t bytes = attr->query.prog_cnt * 4ull;
    writes_range(w, attr->query.prog_ids, bytes);
    if (size < 32 + sizeof more || !writes_read(w, more, at + 32, sizeof more)) return;
    for (int i = 0; i < 3; i++) writes_range(w, more[i], bytes);
}

static void write_test(struct writes *w, const union bpf_attr *attr) {
    uint64_t without_limit = attr->test.data_size_in + 4096ull; /* programs may make packets longer */
    writes_range(w, attr->test.data_out, attr->test.data_size_out ? attr->test.data_size_out : without_limit);
    writes_range(w, attr->test.ctx_out, attr->test.ctx_size_out);
}

void writes_bpf(const uint64_t a[6], struct writes *w) {
    union bpf_attr attr;
    uint64_t size = (uint32_t)a[2];
    memset(&attr, 0, sizeof attr);
    if (!writes_read(w, &attr, a[1], size < sizeof attr ? size : sizeof attr)) return;
    writes_range(w, a[1], size); /* counts, lengths and ids are written back, which ones depends on the kernel */
    switch ((int)a[0]) {
    case BPF_MAP_LOOKUP_ELEM:
    case BPF_MAP_LOOKUP_AND_DELETE_ELEM: write_element(w, &attr, false); break;
    case BPF_MAP_GET_NEXT_KEY: write_element(w, &attr, true); break;
    case BPF_MAP_LOOKUP_BATCH:
    case BPF_MAP_LOOKUP_AND_DELETE_BATCH: write_batch(w, &attr); break;
    case BPF_PROG_LOAD: writes_range(w, attr.log_buf, attr.log_size); break;
    case BPF_BTF_LOAD: writes_range(w, attr.btf_log_buf, attr.btf_log_size); break;
    case BPF_OBJ_GET_INFO_BY_FD: write_info(w, &attr); break;
    case BPF_PROG_QUERY: write_query(w, a[1], &attr, size); break;
    case BPF_PROG_TEST_RUN: write_test(w, &attr); break;
    case BPF_TASK_FD_QUERY: writes_range(w, attr.task_fd_query.buf, attr.task_fd_query.buf_len); break;
    }
}
