// Hostile packets of a debugger: nothing crashes, and nothing is read but the guest's memory and the recording's files.
//   coverage-guided:  clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc tests/fuzz/rsp_fuzz.c
//                     src/rsp/{wire,text,gdb_signal,position,description,agent,breaks,files,tls,libraries,soname,packets,resume,monitor}.c
//   smoke test:       rsp_fuzz SECONDS [SEED]
// link: src/rsp/wire.c src/rsp/text.c src/rsp/gdb_signal.c src/rsp/position.c src/rsp/description.c src/rsp/agent.c
// link: src/rsp/breaks.c src/rsp/files.c src/rsp/tls.c src/rsp/libraries.c src/rsp/soname.c src/rsp/packets.c src/rsp/resume.c src/rsp/monitor.c
// cflags: -DSTANDALONE -fsanitize=address,undefined -fno-sanitize-recover=undefined
#include <sys/socket.h>
#include <time.h>

#include "../unit/fake_target.h"
#include "rsp/packets.h"

#define MUST(x)                                                         \
    do {                                                                \
        if (!(x)) {                                                     \
            fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #x); \
            abort();                                                    \
        }                                                               \
    } while (0)

static struct fake fake;
static struct gdb gdb;
static char packet[PACKET_MAX + 1];

/* Only the one file that the recording has may be opened. */
static int open_checked(struct target *t, const char *path) {
    int fd = fake_open_file(t, path);
    MUST(fd < 0 || strcmp(path, "/fake/program") == 0);
    return fd;
}

/* What a target may rely on. */
static size_t read_checked(struct target *t, uint64_t addr, void *to, size_t n) {
    MUST(n <= PACKET_MAX);
    MUST(n == 0 || addr + n - 1 >= addr || n <= 8); /* agent expressions read up to 8 bytes anywhere */
    return fake_read_memory(t, addr, to, n);
}

/* Input: lines, each one packet; a first byte of 1 means bytes as they come from a socket. */
static void packets_of(const uint8_t *input, size_t n) {
    while (n && !gdb.ended) {
        const uint8_t *end = memchr(input, '\n', n);
        size_t len = end ? (size_t)(end - input) : n;
        if (len <= PACKET_MAX) {
            char *exact = malloc(len);
            memcpy(exact, input, len);
            gdb_packet(&gdb, exact, len);
            free(exact);
        }
        MUST(gdb.reply.len <= PACKET_MAX);
        if (!end) break;
        n -= len + 1;
        input = end + 1;
    }
}

static void stream_of(const uint8_t *input, size_t n) {
    static struct wire wire;
    int fds[2];
    if (n > 60000) return; /* the socket's buffer */
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    MUST(write(fds[1], input, n) == (ssize_t)n && shutdown(fds[1], SHUT_WR) == 0);
    wire_open(&wire, fds[0]);
    gdb.wire = &wire;
    for (long len; !gdb.ended && (len = wire_get(&wire, packet)) >= 0;) {
        gdb_packet(&gdb, packet, (size_t)len);
        char unread[65536]; /* nobody else reads */
        while (recv(fds[1], unread, sizeof unread, MSG_DONTWAIT) > 0) {}
        if (gdb.reply.len < 16384 && !gdb.silent && !wire_put(&wire, gdb.reply.bytes, gdb.reply.len)) break;
    }
    close(fds[0]);
    close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n) {
    static struct target_ops ops;
    ops = fake_ops;
    ops.open_file = open_checked;
    ops.read_memory = read_checked;
    fake_open(&fake, 1000);
    fake.target.ops = &ops;
    fake.signal_at = 777;
    fake.program = "/proc/self/exe";
    gdb_open(&gdb, &fake.target, NULL, (struct stop){.reason = STOP_BEGIN});
    if (n && input[0] == 1)
        stream_of(input + 1, n - 1);
    else
        packets_of(input, n);
    gdb_close(&gdb);
    MUST(fake.n_set == 0);
    return 0;
}

#ifdef STANDALONE
#include "random.h"

/* ---- smoke test: what gdb sends, with some bytes changed ---- */

static const char *const usual[] = {
    "qSupported:multiprocess+;swbreak+;hwbreak+;exec-events+",
    "QStartNoAckMode",
    "?",
    "!",
    "g",
    "G0011223344556677",
    "p10",
    "P1=1122334455667788",
    "m404000,40",
    "M404000,4:00112233",
    "x401000,10",
    "X404000,3:abc",
    "c",
    "s",
    "C0b",
    "bc",
    "bs",
    "vCont;s:p1092.3e8;c:p1092.-1",
    "vCont;r401000,401080:3e9",
    "vCont?",
    "Z0,401010,1;X9,2600002310002b1427",
    "Z1,401020,1",
    "Z2,404010,8",
    "Z3,404018,2",
    "Z4,404020,4",
    "z0,401010,1",
    "z2,404010,8",
    "Hgp1092.3e9",
    "Hc3ea",
    "T3e8",
    "qC",
    "qfThreadInfo",
    "qsThreadInfo",
    "qThreadExtraInfo,3e8",
    "qAttached:1092",
    "qXfer:features:read:target.xml:0,fff",
    "qXfer:auxv:read::0,1000",
    "qXfer:threads:read::0,1000",
    "qXfer:libraries-svr4:read::0,1000",
    "qXfer:exec-file:read:1092:0,100",
    "qXfer:siginfo:read::0,80",
    "vFile:setfs:0",
    "vFile:open:2f66616b652f70726f6772616d,0,0",
    "vFile:open:2f70726f632f343234322f6d617073,0,0",
    "vFile:pread:0,1000,0",
    "vFile:fstat:0",
    "vFile:close:0",
    "vFile:readlink:2f70726f632f343234322f657865",
    "qRcmd,7365656b20333a34",
    "qRcmd,636865636b706f696e74",
    "qRcmd,726573746172742031",
    "qRcmd,7768656e",
    "QPassSignals:e;1e",
    "QCatchSyscalls:1",
    "QCatchSyscalls:1;0;3b;1ff",
    "QCatchSyscalls:0",
    "qRcmd,666f726b73206f6e",
    "vRun;",
    "vKill;1092",
    "vAttach;1092",
    "D;1092",
    "R00",
    "qSymbol::",
};
#define USUAL (sizeof usual / sizeof *usual)

int main(int argc, char **argv) {
    static uint8_t input[65536];
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    random_state = (argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) * 2654435761u) | 1;
    printf("seed %#lx\n", random_state);
    fflush(stdout);
    time_t end = time(NULL) + (time_t)seconds;
    unsigned long rounds = 0;
    for (; time(NULL) < end; rounds++) {
        size_t n = 0;
        bool stream = next() % 4 == 0;
        if (stream) input[n++] = 1;
        for (uint64_t k = 1 + next() % 30; k--;) {
            const char *p = usual[next() % USUAL];
            size_t len = strlen(p), at = n;
            n += (size_t)sprintf((char *)input + n, stream ? "$%s#00" : "%s\n", p);
            for (uint64_t c = next() % 3; c--;) { /* change, cut, repeat */
                size_t i = at + next() % (len + 1);
                if (next() % 4)
                    input[i] = next() % 2 ? (uint8_t)next() : (uint8_t) "0123456789abcdef,;:-f"[next() % 21];
                else if (next() % 2)
                    n = i;
                else if (n < sizeof input / 2)
                    memmove(input + n, input + i, n - i), n += n - i;
                if (n <= at) break;
                len = n - at - 1;
            }
        }
        LLVMFuzzerTestOneInput(input, n);
    }
    printf("%lu debuggers\n", rounds);
    return 0;
}
#endif
