// link: src/engine/decode.c src/engine/decode_table.c
/* The decoder: the table against Zydis over all opcodes, random bytes and real programs, and both against expectations
 * written by hand. */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/decode.h"

#define PC 0x7f1122334455ull

/* Comparison of the two paths */

static unsigned long compared, by_table;

// clang-format off
#define FIELDS(X) \
    X(pc) X(target) X(imm) X(cls) X(len) X(encoding) X(opcode) X(cc) X(opcode_off) X(modrm_off) X(sib_off) \
    X(disp_off) X(disp_size) X(imm_off) X(imm_size) X(rex_off) X(prefix_len) X(modrm) X(has_rex) X(rip_rel) \
    X(eip_rel) X(has_mem) X(rep) X(lock) X(vsib) X(seg) X(gpr_read) X(gpr_write) X(gpr_kill) X(flags_read) \
    X(flags_write) X(flags_kill) X(load_size) X(store_size) X(push_size) X(pop_size)
// clang-format on

static void print_bytes(const uint8_t *b, size_t n) {
    for (size_t i = 0; i < n; i++) print_error("%02x ", b[i]);
    print_error("\n");
}

static void check_consistent(const struct insn *in, const uint8_t *b) {
    assert_int_equal(in->gpr_kill & ~in->gpr_write, 0);
    assert_int_equal(in->flags_kill & ~in->flags_write, 0);
    assert_in_range(in->len, 1, INSN_MAX_LEN);
    assert_in_range(in->opcode_off, in->prefix_len, in->len - 1);
    assert_int_equal(in->opcode, b[in->opcode_off]);
    if (in->modrm_off) assert_int_equal(in->modrm, b[in->modrm_off]);
    if (in->has_rex) assert_int_equal(b[in->rex_off] >> 4, 4);
    if (in->imm_size && in->encoding != ENC_3DNOW) assert_true(in->imm_off + in->imm_size <= in->len);
    if (in->disp_size) assert_true(in->disp_off + in->disp_size <= in->len);
    assert_false(in->rip_rel && !in->has_mem);
}

/* Returns the length, 0 if invalid. */
static unsigned compare_paths(const uint8_t *b, size_t avail) {
    struct insn table, zydis;
    bool found = decode_insn_zydis(&zydis, b, avail, PC);
    if (!found) assert_int_equal(zydis.cls, INSN_INVALID);
    compared++;
    if (decode_insn_table(&table, b, avail, PC)) {
        by_table++;
        bool same = found;
#define COMPARE(field) same = same && table.field == zydis.field;
        FIELDS(COMPARE)
        if (!same) {
            print_bytes(b, avail < 15 ? avail : 15);
            if (!found) print_error("only the table decodes this\n");
#define TELL(field)                                                                          \
    if (table.field != zydis.field)                                                          \
        print_error("%s: table %llx, Zydis %llx\n", #field, (unsigned long long)table.field, \
                    (unsigned long long)zydis.field);
            FIELDS(TELL)
            fail();
        }
    }
    if (!found) return 0;
    check_consistent(&zydis, b);
    return zydis.len;
}

/* All opcodes */

static const uint8_t prefix_sets[][3] = {{0},          {0x66},       {0xf3},       {0xf2},       {0x64},
                                         {0xf0},       {0x3e},       {0x66, 0x66}, {0x66, 0x64}, {0x2e, 0x66},
                                         {0x66, 0xf3}, {0xf0, 0xf2}, {0x67},       {0x65}};
static const int16_t rexes[] = {-1, 0x48, 0x40, 0x45, 0x4f};
static const uint8_t tails[][12] = {
    {0x24, 0x80, 0x11, 0x22, 0x93, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa},
    {0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00},
    {0xed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
};

static unsigned put_legacy(uint8_t *b, const uint8_t *prefixes, int rex, unsigned map, unsigned opcode) {
    unsigned n = 0;
    for (unsigned i = 0; i < 3 && prefixes[i]; i++) b[n++] = prefixes[i];
    if (rex >= 0) b[n++] = (uint8_t)rex;
    if (map) b[n++] = 0x0f;
    if (map > 1) b[n++] = map == 2 ? 0x38 : 0x3a;
    b[n++] = (uint8_t)opcode;
    return n;
}

/* The common combinations of prefixes meet every modrm, the others one in five. */
static void all_legacy_opcodes(void **state) {
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(prefix_sets) * ARRAY_LEN(rexes) * 4 * 256; i++) {
        unsigned opcode = i % 256, map = i / 256 % 4, rex = i / 1024 % ARRAY_LEN(rexes),
                 set = i / 1024 / ARRAY_LEN(rexes);
        unsigned step = set < 4 && rex < 2 ? 1 : 5;
        for (unsigned modrm = i % step; modrm < 256; modrm += step) {
            uint8_t b[32] = {0};
            unsigned n = put_legacy(b, prefix_sets[set], rexes[rex], map, opcode);
            b[n++] = (uint8_t)modrm;
            memcpy(b + n, tails[(modrm + set) % ARRAY_LEN(tails)], sizeof(tails[0]));
            compare_paths(b, sizeof(b));
        }
    }
}

static void all_vex_opcodes(void **state) {
    (void)state;
    static const uint8_t vvvvs[] = {15, 0, 5};
    for (unsigned i = 0; i < ARRAY_LEN(vvvvs) * 8 * 3 * 256 * 16; i++) {
        unsigned slot = i % 16, opcode = i / 16 % 256, map = 1 + i / 4096 % 3, rxb = i / 12288 % 8, v = i / 12288 / 8;
        for (unsigned modrm = i % 11; modrm < 256; modrm += 11) {
            uint8_t b[32] = {0xc4, (uint8_t)(rxb << 5 | map), (uint8_t)((slot & 1) << 7 | vvvvs[v] << 3 | slot >> 1),
                             (uint8_t)opcode, (uint8_t)modrm};
            memcpy(b + 5, tails[modrm % ARRAY_LEN(tails)], sizeof(tails[0]));
            compare_paths(b, sizeof(b));
            if (rxb >> 1 == 3 && map == 1 && !(slot & 1)) { /* the same with two bytes of prefix */
                b[1] = 0xc5;
                b[2] = (uint8_t)((rxb & 4) << 5 | vvvvs[v] << 3 | slot >> 1);
                compare_paths(b + 1, sizeof(b) - 1);
            }
        }
    }
}

/* Random bytes */

static uint64_t random_state = 0x9e3779b97f4a7c15;
static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static void random_bytes(void **state) {
    (void)state;
    static const uint8_t frequent[] = {0x66, 0x66, 0xf2, 0xf3, 0xf0, 0x64, 0x65, 0x2e,
                                       0x67, 0x48, 0x41, 0x4c, 0x0f, 0x0f, 0xc4, 0xc5};
    for (int i = 0; i < 3000000; i++) {
        uint64_t words[4] = {next_random(), next_random(), next_random(), next_random()};
        uint8_t b[32];
        memcpy(b, words, sizeof(b));
        for (unsigned k = 0; k < words[3] % 5; k++) b[k] = frequent[b[k] % ARRAY_LEN(frequent)];
        compare_paths(b, i % 4 ? sizeof(b) : words[2] % 16);
    }
}

/* Real programs */

static const char *const programs[] = {"/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/python3.11",
                                       "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"};

static void sweep_text(const uint8_t *text, size_t size) {
    unsigned step = size > 2000000 ? 3 : 1; /* of larger ones every third page */
    for (size_t at = 0; at + 32 < size;) {
        unsigned len = compare_paths(text + at, size - at);
        at += len ? len : 1;
        if (step > 1 && at / PAGE_SIZE % step) at = (at / PAGE_SIZE / step + 1) * step * PAGE_SIZE;
    }
}

static void sweep_program(const char *path) {
    int fd = open(path, O_RDONLY);
    if (fd < 0) return;
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    const uint8_t *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    assert_ptr_not_equal(file, MAP_FAILED);
    const Elf64_Ehdr *eh = (const Elf64_Ehdr *)file;
    const Elf64_Shdr *sh = (const Elf64_Shdr *)(file + eh->e_shoff);
    const char *names = (const char *)file + sh[eh->e_shstrndx].sh_offset;
    unsigned long compared_before = compared, by_table_before = by_table;
    for (int i = 0; i < eh->e_shnum; i++)
        if (strcmp(names + sh[i].sh_name, ".text") == 0) sweep_text(file + sh[i].sh_offset, sh[i].sh_size);
    munmap((void *)file, (size_t)st.st_size);
    double share = 100.0 * (double)(by_table - by_table_before) / (double)(compared - compared_before);
    print_message("%s: %lu instructions, %.2f%% by table\n", path, compared - compared_before, share);
    assert_true(share > 95);
}

static void real_programs(void **state) {
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(programs); i++) sweep_program(programs[i]);
}

/* The end of readable memory */

static void never_reads_past_avail(void **state) {
    (void)state;
    uint8_t *pages = mmap(NULL, 2 * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(mprotect(pages + PAGE_SIZE, PAGE_SIZE, PROT_NONE), 0);
    for (int i = 0; i < 30000; i++) {
        uint8_t b[16];
        uint64_t words[2] = {next_random(), next_random()};
        memcpy(b, words, 16);
        if (i % 2) b[0] = (uint8_t)(0x48 + (b[0] & 7));
        struct insn whole, cut;
        if (!decode_insn(&whole, b, 15, PC)) continue;
        for (unsigned avail = 0; avail <= whole.len; avail++) {
            uint8_t *end = pages + PAGE_SIZE - avail;
            memcpy(end, b, avail);
            assert_int_equal(decode_insn(&cut, end, avail, PC), avail == whole.len);
            assert_int_equal(cut.cls, avail == whole.len ? whole.cls : INSN_INVALID);
        }
    }
    munmap(pages, 2 * PAGE_SIZE);
}

/* Expectations */

enum { AX = 1, CX = 2, DX = 4, BX = 8, SP = 16, BP = 32, SI = 64, DI = 128 };
enum { R8 = 1 << 8, R9 = 1 << 9, R11 = 1 << 11, R12 = 1 << 12, R13 = 1 << 13 };
enum { C = FLAG_CF, P = FLAG_PF, A = FLAG_AF, Z = FLAG_ZF, S = FLAG_SF, O = FLAG_OF, D = FLAG_DF, ARITH = FLAGS_ARITH };
#define ALL 0xffff
#define EVERY_FLAG (FLAGS_ARITH | FLAG_DF)
#define B(...) .bytes = {__VA_ARGS__}, .len = sizeof((uint8_t[]){__VA_ARGS__})

struct expectation {
    const char *text;
    uint8_t bytes[16];
    unsigned len, cls;
    unsigned read, write, kill;
    unsigned flags_read, flags_write, flags_kill;
    unsigned load, store, push, pop;
    int64_t imm;
    uint64_t target; /* distance from pc, 0: none */
    unsigned seg, rep, lock, cc;
};

static const struct expectation expectations[] = {
    {"mov rbx, rax", B(0x48, 0x89, 0xc3), INSN_PLAIN, AX, BX, BX},
    {"mov ebx, eax", B(0x89, 0xc3), INSN_PLAIN, AX, BX, BX},
    {"mov bx, ax", B(0x66, 0x89, 0xc3), INSN_PLAIN, AX, BX, 0},
    {"mov bl, ah", B(0x88, 0xe3), INSN_PLAIN, AX, BX, 0},
    {"mov bl, spl", B(0x40, 0x88, 0xe3), INSN_PLAIN, SP, BX, 0},
    {"mov r9, [r12+rcx*8+16]", B(0x4d, 0x8b, 0x4c, 0xcc, 0x10), INSN_PLAIN, CX | R12, R9, R9, .load = 8},
    {"mov [r13], r9b", B(0x45, 0x88, 0x4d, 0x00), INSN_PLAIN, R9 | R13, 0, 0, .store = 1},
    {"mov eax, [abs]", B(0x8b, 0x04, 0x25, 1, 2, 3, 4), INSN_PLAIN, 0, AX, AX, .load = 4},
    {"mov rax, [rip+1]", B(0x48, 0x8b, 0x05, 1, 0, 0, 0), INSN_PLAIN, 0, AX, AX, .load = 8, .target = 8},
    {"mov dword [rip-8], 7", B(0xc7, 0x05, 0xf8, 0xff, 0xff, 0xff, 7, 0, 0, 0), INSN_PLAIN, 0, 0, 0, .store = 4,
     .imm = 7, .target = 2},
    {"mov rax, imm64", B(0x48, 0xb8, 1, 0, 0, 0, 0, 0, 0, 0x80), INSN_PLAIN, 0, AX, AX, .imm = INT64_MIN + 1},
    {"mov r9d, -1", B(0x41, 0xb9, 0xff, 0xff, 0xff, 0xff), INSN_PLAIN, 0, R9, R9, .imm = -1},
    {"mov ah, 0x80", B(0xb4, 0x80), INSN_PLAIN, 0, AX, 0, .imm = -128},
    {"mov rax, fs:[40]", B(0x64, 0x48, 0x8b, 0x04, 0x25, 40, 0, 0, 0), INSN_PLAIN, 0, AX, AX, .load = 8, .seg = 0x64},
    {"mov rax, gs:[40]", B(0x65, 0x48, 0x8b, 0x04, 0x25, 40, 0, 0, 0), INSN_GS_MEM, 0, AX, AX, .load = 8, .seg = 0x65},
    {"gs lea rax, [rbx]", B(0x65, 0x48, 0x8d, 0x03), INSN_PLAIN, BX, AX, AX},
    {"gs nop [rax]", B(0x65, 0x0f, 0x1f, 0x00), INSN_PLAIN, AX, 0, 0},
    {"gs movsb", B(0x65, 0xa4), INSN_GS_MEM, SI | DI, SI | DI, SI | DI, D, .load = 1, .store = 1, .seg = 0x65},
    {"mov al, moffs", B(0xa0, 1, 2, 3, 4, 5, 6, 7, 8), INSN_PLAIN, 0, AX, 0, .load = 1},
    {"movzx eax, bh", B(0x0f, 0xb6, 0xc7), INSN_PLAIN, BX, AX, AX},
    {"movsxd rax, [rdi]", B(0x48, 0x63, 0x07), INSN_PLAIN, DI, AX, AX, .load = 4},
    {"add [rbx], al", B(0x00, 0x03), INSN_PLAIN, AX | BX, 0, 0, 0, ARITH, ARITH, 1, 1},
    {"lock add [rbx], al", B(0xf0, 0x00, 0x03), INSN_PLAIN, AX | BX, 0, 0, 0, ARITH, ARITH, 1, 1, .lock = 1},
    {"adc rax, rdx", B(0x48, 0x11, 0xd0), INSN_PLAIN, AX | DX, AX, AX, C, ARITH, ARITH},
    {"cmp rax, -1", B(0x48, 0x83, 0xf8, 0xff), INSN_PLAIN, AX, 0, 0, 0, ARITH, ARITH, .imm = -1},
    {"test byte [rdi], 1", B(0xf6, 0x07, 1), INSN_PLAIN, DI, 0, 0, 0, ARITH, ARITH, .load = 1, .imm = 1},
    {"inc ecx", B(0xff, 0xc1), INSN_PLAIN, CX, CX, CX, 0, ARITH & ~C, ARITH & ~C},
    {"not ecx", B(0xf7, 0xd1), INSN_PLAIN, CX, CX, CX},
    {"xor eax, eax", B(0x31, 0xc0), INSN_PLAIN, AX, AX, AX, 0, ARITH, ARITH},
    {"shl eax, 5", B(0xc1, 0xe0, 5), INSN_PLAIN, AX, AX, AX, 0, ARITH, ARITH, .imm = 5},
    {"shl eax, 32", B(0xc1, 0xe0, 32), INSN_PLAIN, AX, AX, AX, 0, ARITH, 0, .imm = 32},
    {"shl rax, 32", B(0x48, 0xc1, 0xe0, 32), INSN_PLAIN, AX, AX, AX, 0, ARITH, ARITH, .imm = 32},
    {"shl eax, cl", B(0xd3, 0xe0), INSN_PLAIN, AX | CX, AX, AX, 0, ARITH, 0},
    {"sar eax, 1", B(0xd1, 0xf8), INSN_PLAIN, AX, AX, AX, 0, ARITH, ARITH},
    {"rcl al, 9", B(0xc0, 0xd0, 9), INSN_PLAIN, AX, AX, 0, C, C | O, 0, .imm = 9},
    {"mul rcx", B(0x48, 0xf7, 0xe1), INSN_PLAIN, AX | CX, AX | DX, AX | DX, 0, ARITH, ARITH},
    {"div ecx", B(0xf7, 0xf1), INSN_PLAIN, AX | CX | DX, AX | DX, AX | DX, 0, ARITH, ARITH},
    {"imul eax, [rbx], 3", B(0x6b, 0x03, 3), INSN_PLAIN, BX, AX, AX, 0, ARITH, ARITH, .load = 4, .imm = 3},
    {"cdq", B(0x99), INSN_PLAIN, AX, DX, DX},
    {"bsf eax, ecx", B(0x0f, 0xbc, 0xc1), INSN_PLAIN, CX, AX, 0, 0, ARITH, ARITH},
    {"bt [rax], ecx", B(0x0f, 0xa3, 0x08), INSN_PLAIN, AX | CX, 0, 0, 0, ARITH & ~Z, ARITH & ~Z,
     .load = MEM_SIZE_UNKNOWN},
    {"cmovz rax, rcx", B(0x48, 0x0f, 0x44, 0xc1), INSN_PLAIN, CX, AX, 0, Z},
    {"setz al", B(0x0f, 0x94, 0xc0), INSN_PLAIN, 0, AX, 0, Z},
    {"xchg [rbx], eax", B(0x87, 0x03), INSN_PLAIN, AX | BX, AX, AX, .load = 4, .store = 4, .lock = 1},
    {"lock cmpxchg [rbx], ecx", B(0xf0, 0x0f, 0xb1, 0x0b), INSN_PLAIN, AX | BX | CX, AX, 0, 0, ARITH, ARITH, 4, 4,
     .lock = 1},
    {"cmpxchg16b [rsi]", B(0x48, 0x0f, 0xc7, 0x0e), INSN_PLAIN, AX | BX | CX | DX | SI, AX | DX, 0, 0, Z, Z, 16, 16},
    {"nop", B(0x90), INSN_PLAIN, 0, 0, 0},
    {"xchg r8, rax", B(0x49, 0x90), INSN_PLAIN, AX | R8, AX | R8, AX | R8},
    {"rex.b pause: exchanges", B(0xf3, 0x49, 0x90), INSN_PLAIN, AX | R8, AX | R8, 0},
    {"endbr64", B(0xf3, 0x0f, 0x1e, 0xfa), INSN_PLAIN, 0, 0, 0},
    {"rdsspq rax", B(0xf3, 0x48, 0x0f, 0x1e, 0xc8), INSN_PLAIN, 0, AX, 0},
    {"push r12", B(0x41, 0x54), INSN_PLAIN, R12 | SP, SP, SP, .push = 8},
    {"push ax", B(0x66, 0x50), INSN_PLAIN, AX | SP, SP, SP, .push = 2},
    {"push [rax]", B(0xff, 0x30), INSN_PLAIN, AX | SP, SP, SP, .load = 8, .push = 8},
    {"pop [rax]", B(0x8f, 0x00), INSN_PLAIN, AX | SP, SP, SP, .store = 8, .pop = 8},
    {"pop rbx", B(0x5b), INSN_PLAIN, SP, SP | BX, SP | BX, .pop = 8},
    {"leave", B(0xc9), INSN_PLAIN, SP | BP, SP | BP, SP | BP, .pop = 8},
    {"enter 0x8000, 0", B(0xc8, 0, 0x80, 0), INSN_PLAIN, SP | BP, SP | BP, SP | BP, .push = 8, .imm = 0x8000},
    {"pushf", B(0x9c), INSN_PUSHF, SP, SP, SP, EVERY_FLAG, .push = 8},
    {"popf", B(0x9d), INSN_POPF, SP, SP, SP, 0, EVERY_FLAG, EVERY_FLAG, .pop = 8},
    {"std", B(0xfd), INSN_PLAIN, 0, 0, 0, 0, D, D},
    {"rep stosq", B(0xf3, 0x48, 0xab), INSN_PLAIN, AX | CX | DI, CX | DI, 0, D, .store = 8, .rep = 1},
    {"repne movsb", B(0xf2, 0xa4), INSN_PLAIN, CX | SI | DI, CX | SI | DI, 0, D, .load = 1, .store = 1, .rep = 1},
    {"repe cmpsb", B(0xf3, 0xa6), INSN_PLAIN, CX | SI | DI, CX | SI | DI, 0, Z | D, ARITH, 0, .load = 1, .rep = 1},
    {"scasd", B(0xaf), INSN_PLAIN, AX | DI, DI, DI, D, ARITH, ARITH, .load = 4},
    {"xlat", B(0xd7), INSN_PLAIN, AX | BX, AX, 0, .load = 1},
    {"jmp -2", B(0xeb, 0xfc), INSN_JMP, .imm = -4, .target = -2},
    {"bnd jmp", B(0xf2, 0xe9, 1, 0, 0, 0), INSN_JMP, .imm = 1, .target = 7},
    {"jnz", B(0x0f, 0x85, 0x10, 0, 0, 0), INSN_JCC, .flags_read = Z, .imm = 16, .target = 22, .cc = 5},
    {"66 jnz", B(0x66, 0x0f, 0x85, 0x10, 0, 0, 0), INSN_JCC, .flags_read = Z, .imm = 16, .target = 23, .cc = 5},
    {"jle", B(0x7e, 1), INSN_JCC, .flags_read = Z | S | O, .imm = 1, .target = 3, .cc = 14},
    {"loopne", B(0xe0, 1), INSN_LOOP, CX, CX, CX, Z, .imm = 1, .target = 3},
    {"jecxz", B(0x67, 0xe3, 1), INSN_LOOP, CX, .imm = 1, .target = 4},
    {"call", B(0xe8, 0, 1, 0, 0), INSN_CALL, SP, SP, SP, .push = 8, .imm = 256, .target = 261},
    {"call [rip+4]", B(0xff, 0x15, 4, 0, 0, 0), INSN_CALL_IND, SP, SP, SP, .load = 8, .push = 8, .target = 10},
    {"notrack jmp rax", B(0x3e, 0xff, 0xe0), INSN_JMP_IND, AX},
    {"jmp gs:[rax]", B(0x65, 0xff, 0x20), INSN_JMP_IND, AX, .load = 8, .seg = 0x65},
    {"rep ret", B(0xf3, 0xc3), INSN_RET, SP, SP, SP, .pop = 8},
    {"ret 0x8000", B(0xc2, 0, 0x80), INSN_RET, SP, SP, SP, .pop = 8, .imm = 0x8000},
    {"syscall", B(0x0f, 0x05), INSN_SYSCALL, ALL, AX | CX | R11, 0, EVERY_FLAG, EVERY_FLAG},
    {"int3", B(0xcc), INSN_INT, ALL, ALL, 0, EVERY_FLAG, EVERY_FLAG, .imm = 3},
    {"int 0x80", B(0xcd, 0x80), INSN_INT, ALL, ALL, 0, EVERY_FLAG, EVERY_FLAG, .imm = 0x80},
    {"sysenter", B(0x0f, 0x34), INSN_FAR, ALL, ALL, 0, EVERY_FLAG, EVERY_FLAG},
    {"cpuid", B(0x0f, 0xa2), INSN_CPUID, AX | CX, AX | BX | CX | DX, AX | BX | CX | DX},
    {"rdtsc", B(0x0f, 0x31), INSN_RDTSC, 0, AX | DX, AX | DX},
    {"rdtscp", B(0x0f, 0x01, 0xf9), INSN_RDTSCP, 0, AX | CX | DX, AX | CX | DX},
    {"rdrand eax", B(0x0f, 0xc7, 0xf0), INSN_RDRAND, 0, AX, AX, 0, ARITH, ARITH},
    {"xgetbv", B(0x0f, 0x01, 0xd0), INSN_XGETBV, CX, AX | DX, AX | DX},
    {"rdpid rax", B(0xf3, 0x0f, 0xc7, 0xf8), INSN_RDPID, 0, AX, AX},
    {"xsavec [rdi]", B(0x0f, 0xc7, 0x27), INSN_XSAVE, AX | DX | DI, .store = MEM_SIZE_UNKNOWN},
    {"xbegin", B(0xc7, 0xf8, 2, 0, 0, 0), INSN_XBEGIN, ALL, AX, 0, EVERY_FLAG, .imm = 2, .target = 8},
    {"rdgsbase rax", B(0xf3, 0x48, 0x0f, 0xae, 0xc8), INSN_GSBASE, 0, AX, AX},
    {"mov fs, eax", B(0x8e, 0xe0), INSN_PLAIN, AX},
    {"mov eax, gs", B(0x8c, 0xe8), INSN_SEGREG, 0, AX, AX},
    {"ud2", B(0x0f, 0x0b), INSN_PLAIN},
    {"hlt", B(0xf4), INSN_PLAIN},
    {"movq rax, xmm1", B(0x66, 0x48, 0x0f, 0x7e, 0xc8), INSN_PLAIN, 0, AX, AX},
    {"pcmpestri xmm0, xmm1", B(0x66, 0x0f, 0x3a, 0x61, 0xc1, 0), INSN_PLAIN, AX | DX, CX, CX, 0, ARITH, ARITH},
    {"movaps [rsp+32], xmm8", B(0x44, 0x0f, 0x29, 0x44, 0x24, 32), INSN_PLAIN, SP, .store = 16},
    {"vmovdqu ymm0, [rax]", B(0xc5, 0xfe, 0x6f, 0x00), INSN_PLAIN, AX, .load = 32},
    {"andn eax, r9d, [rbx]", B(0xc4, 0xe2, 0x30, 0xf2, 0x03), INSN_PLAIN, BX | R9, AX, AX, 0, ARITH, ARITH, .load = 4},
    {"vptest xmm0, xmm1", B(0xc4, 0xe2, 0x79, 0x17, 0xc1), INSN_PLAIN, .flags_write = ARITH, .flags_kill = ARITH},
    {"str eax", B(0x0f, 0x00, 0xc8), INSN_PLAIN, 0, AX, 0},
    {"mulx rax, r9, rcx", B(0xc4, 0xe2, 0xb3, 0xf6, 0xc1), INSN_PLAIN, CX | DX, AX | R9, AX | R9},
    {"vgatherdps xmm0, [rdx+xmm1], xmm2", B(0xc4, 0xe2, 0x69, 0x92, 0x04, 0x0a), INSN_PLAIN, DX,
     .load = MEM_SIZE_UNKNOWN},
    {"vmovaps zmm0, [rax]", B(0x62, 0xf1, 0x7c, 0x48, 0x28, 0x00), INSN_PLAIN, AX, .load = 64},
    {"vmovdqu8 zmm0 {k1}, [rax]", B(0x62, 0xf1, 0x7f, 0x49, 0x6f, 0x00), INSN_PLAIN, AX, .load = MEM_SIZE_UNKNOWN},
    {"vpmaskmovd [rax], xmm1, xmm2", B(0xc4, 0xe2, 0x71, 0x8e, 0x10), INSN_PLAIN, AX, .store = MEM_SIZE_UNKNOWN},
    {"clflush [rax]", B(0x0f, 0xae, 0x38), INSN_PLAIN, AX, .load = 1},
    {"pfadd mm0, [rax]", B(0x0f, 0x0f, 0x00, 0x9e), INSN_PLAIN, AX, .load = 8},
    {"push es: none in 64-bit mode", .bytes = {0x06}, .cls = INSN_INVALID},
    {"mov with lock", .bytes = {0xf0, 0x89, 0xc0}, .cls = INSN_INVALID},
    {"vex after rex", .bytes = {0x48, 0xc5, 0xfe, 0x6f, 0x00}, .cls = INSN_INVALID},
};

static void expected_instructions(void **state) {
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(expectations); i++) {
        const struct expectation *e = &expectations[i];
        struct insn in;
        if (decode_insn(&in, e->bytes, sizeof(e->bytes), PC) != (e->cls != INSN_INVALID))
            fail_msg("%s: validity", e->text);
        if (e->cls == INSN_INVALID) continue;
#define EXPECT(field, want)                     \
    if ((uint64_t)in.field != (uint64_t)(want)) \
    fail_msg("%s: " #field " is %#llx, not %#llx", e->text, (unsigned long long)in.field, (unsigned long long)(want))
        EXPECT(cls, e->cls);
        EXPECT(len, e->len);
        EXPECT(gpr_read, e->read);
        EXPECT(gpr_write, e->write);
        EXPECT(gpr_kill, e->kill);
        EXPECT(flags_read, e->flags_read);
        EXPECT(flags_write, e->flags_write);
        EXPECT(flags_kill, e->flags_kill);
        EXPECT(load_size, e->load);
        EXPECT(store_size, e->store);
        EXPECT(push_size, e->push);
        EXPECT(pop_size, e->pop);
        EXPECT(imm, e->imm);
        EXPECT(target, e->target ? PC + e->target : 0);
        EXPECT(seg, e->seg);
        EXPECT(rep, e->rep);
        EXPECT(lock, e->lock);
        EXPECT(cc, e->cc);
    }
}

/* Where the parts are, for one instruction that has them all. */
static void layout(void **state) {
    (void)state;
    static const uint8_t b[] = {0x66, 0x41, 0x0f, 0x3a, 0x22, 0x84,
                                0x24, 0x78, 0x56, 0x34, 0x12, 0x81}; /* pinsrd xmm0, [r12+disp], imm */
    struct insn in;
    assert_true(decode_insn(&in, b, sizeof(b), PC));
    assert_int_equal(in.len, sizeof(b));
    assert_int_equal(in.encoding, ENC_LEGACY);
    assert_int_equal(in.prefix_len, 1);
    assert_true(in.has_rex);
    assert_int_equal(in.rex_off, 1);
    assert_int_equal(in.opcode_off, 4);
    assert_int_equal(in.opcode, 0x22);
    assert_int_equal(in.modrm_off, 5);
    assert_int_equal(in.modrm, 0x84);
    assert_int_equal(in.sib_off, 6);
    assert_int_equal(in.disp_off, 7);
    assert_int_equal(in.disp_size, 4);
    assert_int_equal(in.imm_off, 11);
    assert_int_equal(in.imm_size, 1);
    assert_int_equal(in.imm, (int8_t)0x81);
    assert_true(in.has_mem);
    assert_false(in.rip_rel);
    assert_int_equal(in.gpr_read, R12);

    static const uint8_t eip[] = {0x67, 0x8b, 0x05, 0, 0, 0, 0x80};
    assert_true(decode_insn(&in, eip, sizeof(eip), 0xffffffff0));
    assert_true(in.eip_rel && !in.rip_rel);
    assert_int_equal(in.target, 0x7ffffff7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expected_instructions),  cmocka_unit_test(layout),
        cmocka_unit_test(never_reads_past_avail), cmocka_unit_test(all_legacy_opcodes),
        cmocka_unit_test(all_vex_opcodes),        cmocka_unit_test(random_bytes),
        cmocka_unit_test(real_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
