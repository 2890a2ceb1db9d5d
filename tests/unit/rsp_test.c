// link: src/rsp/wire.c src/rsp/text.c src/rsp/gdb_signal.c src/rsp/position.c src/rsp/description.c src/rsp/agent.c
// link: src/rsp/breaks.c src/rsp/files.c src/rsp/tls.c src/rsp/libraries.c src/rsp/soname.c src/rsp/packets.c src/rsp/resume.c src/rsp/monitor.c
// cflags: -fsanitize=address,undefined -fno-sanitize-recover=undefined
/* gdb's remote protocol: packets on a socket, and what they do to a target. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "fake_target.h"
#include "rsp/packets.h"

/* ---- wire ---- */

struct pair {
    struct wire wire;
    int peer;
};

static void pair_open(struct pair *p) {
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    wire_open(&p->wire, fds[0]);
    p->peer = fds[1];
}

static void pair_close(struct pair *p) {
    close(p->wire.fd);
    close(p->peer);
}

static void send_text(struct pair *p, const char *text) {
    assert_int_equal(write(p->peer, text, strlen(text)), strlen(text));
}

static void expect_text(struct pair *p, const char *text) {
    char got[4096];
    ssize_t n = recv(p->peer, got, sizeof got - 1, MSG_DONTWAIT);
    got[n < 0 ? 0 : n] = '\0';
    assert_string_equal(got, text);
}

static char packet[PACKET_MAX + 1];

static void test_wire_acks(void **state) {
    struct pair p;
    pair_open(&p);
    send_text(&p, "+$g#67");
    assert_int_equal(wire_get(&p.wire, packet), 1);
    assert_string_equal(packet, "g");
    expect_text(&p, "+");
    send_text(&p, "$g#68$g#67");
    assert_int_equal(wire_get(&p.wire, packet), 1);
    expect_text(&p, "-+");
    send_text(&p, "-+");
    assert_true(wire_put(&p.wire, "OK", 2));
    expect_text(&p, "$OK#9a$OK#9a");
    p.wire.acks = false;
    assert_true(wire_put(&p.wire, "", 0));
    expect_text(&p, "$#00");
    send_text(&p, "\003$g#00"); /* late; without acknowledgements the sum does not count */
    assert_int_equal(wire_get(&p.wire, packet), 1);
    pair_close(&p);
}

static void test_wire_escapes(void **state) {
    struct pair p;
    pair_open(&p);
    p.wire.acks = false;
    send_text(&p, "$X}\003}\004}]}\nb#00$");
    assert_int_equal(wire_get(&p.wire, packet), 6);
    assert_memory_equal(packet, "X#$}*b", 6);
    send_text(&p, "cut off$ab#00");
    assert_int_equal(wire_get(&p.wire, packet), 2);
    struct out o = {.most = 100};
    assert_int_equal(out_binary(&o, "X#$}*b", 6), 6);
    assert_int_equal(o.len, 10);
    assert_memory_equal(o.bytes, "X}\003}\004}]}\nb", 10);
    out_free(&o);
    pair_close(&p);
}

static void test_wire_hostile(void **state) {
    static const char *const garbage[] = {"GET / HTTP/1.1\r\n", "+\n", "$g", "$g#6", ""};
    struct pair p;
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        pair_open(&p);
        send_text(&p, garbage[i]);
        shutdown(p.peer, SHUT_WR);
        assert_int_equal(wire_get(&p.wire, packet), -1);
        assert_non_null(p.wire.lost);
        assert_int_equal(wire_get(&p.wire, packet), -1);
        pair_close(&p);
    }
    pair_open(&p); /* a packet without an end */
    if (fork() == 0) {
        static char many[65536];
        memset(many, 'a', sizeof many);
        send_text(&p, "$");
        for (int i = 0; i < 3; i++)
            if (write(p.peer, many, sizeof many) < 0) break;
        _exit(0);
    }
    assert_int_equal(wire_get(&p.wire, packet), -1);
    assert_string_equal(p.wire.lost, "a packet is too long");
    pair_close(&p);
    pair_open(&p); /* nobody understands */
    for (int i = 0; i < 20; i++) send_text(&p, "-");
    assert_false(wire_put(&p.wire, "OK", 2));
    pair_close(&p);
}

static void test_wire_interrupt(void **state) {
    struct pair p;
    int stop[2];
    pair_open(&p);
    assert_int_equal(pipe(stop), 0);
    send_text(&p, "\003");
    assert_true(wire_wait_interrupt(&p.wire, stop[0]));
    assert_int_equal(write(stop[1], "", 1), 1);
    assert_false(wire_wait_interrupt(&p.wire, stop[0]));
    send_text(&p, "$?#3f");
    assert_false(wire_wait_interrupt(&p.wire, stop[0])); /* a packet stays for later */
    assert_int_equal(wire_get(&p.wire, packet), 1);
    assert_int_equal(read(stop[0], packet, 1), 1);
    send_text(&p, "$?#3f\003"); /* not between packets */
    close(p.peer);
    assert_true(wire_wait_interrupt(&p.wire, stop[0]));
    close(p.wire.fd);
    close(stop[0]);
    close(stop[1]);
}

/* ---- packets ---- */

static struct fake fake;
static struct gdb gdb;

static int setup(void **state) {
    fake_open(&fake, 100000);
    gdb_open(&gdb, &fake.target, NULL, (struct stop){.reason = STOP_BEGIN});
    return 0;
}

static int teardown(void **state) {
    gdb_close(&gdb);
    assert_int_equal(fake.n_set, 0);
    return 0;
}

static const char *ask_bytes(const char *bytes, size_t n) {
    static char reply[PACKET_MAX + 1];
    char *exact = malloc(n); /* so that reading too far is seen */
    memcpy(exact, bytes, n);
    gdb_packet(&gdb, exact, n);
    free(exact);
    memcpy(reply, gdb.reply.bytes, gdb.reply.len);
    reply[gdb.reply.len] = '\0';
    return reply;
}

static const char *ask(const char *text) { return ask_bytes(text, strlen(text)); }

#define REPLY(text, wanted) assert_string_equal(ask(text), wanted)
#define REPLY_HAS(text, part) assert_non_null(strstr(ask(text), part))

/* A stop reply without the registers in it. */
static const char *stop_of(const char *text) {
    static char stop[1024];
    const char *reply = ask(text), *rest = strstr(reply, "thread:");
    snprintf(stop, sizeof stop, "%.3s %s", reply, rest ? rest : "");
    return stop;
}
#define STOPS(text, wanted) assert_string_equal(stop_of(text), wanted)

static void test_agreements(void **state) {
    REPLY_HAS("qSupported:multiprocess+;swbreak+;hwbreak+;xmlRegisters=i386", "PacketSize=20000;");
    REPLY_HAS("qSupported", "ReverseStep+;ReverseContinue+");
    REPLY("vMustReplyEmpty", "");
    REPLY("nonsense", "");
    REPLY("", "");
    REPLY("!", "OK");
    REPLY("QStartNoAckMode", "OK");
    REPLY("qAttached:1092", "1");
    REPLY("qC", "QCp1092.3e8");
    REPLY("qfThreadInfo", "mp1092.3e8,p1092.3e9,p1092.3ea");
    REPLY("qsThreadInfo", "l");
    REPLY("qThreadExtraInfo,p1092.3e8", "776f726b6572203c303e3a2072756e6e696e67");
    REPLY("vCont?", "vCont;c;C;s;S;r");
    REPLY("Tp1092.3e9", "OK");
    REPLY("Tp1092.3", "E01");
    REPLY("Tp1.3e9", "E01");
    REPLY("qXfer:threads:read::0,1000",
          "l<?xml version=\"1.0\"?>\n<threads>\n"
          "<thread id=\"p1092.3e8\" name=\"worker &lt;0&gt;\">running</thread>\n"
          "<thread id=\"p1092.3e9\" name=\"worker &lt;1&gt;\">waits &amp; waits</thread>\n"
          "<thread id=\"p1092.3ea\" name=\"worker &lt;2&gt;\">waits &amp; waits</thread>\n"
          "</threads>\n");
    REPLY("qXfer:exec-file:read:1092:0,1000", "l/fake/program");
    REPLY("qXfer:exec-file:read:1092:5,3", "m/pr");
    REPLY("qXfer:exec-file:read:1092:d,3", "l");
    REPLY("qXfer:exec-file:read:1092:e,3", "E01");
    REPLY("qXfer:exec-file:read:7:0,1000", "E01");
    REPLY("qXfer:siginfo:read::0,1000", "E01");
    REPLY("qXfer:nonsense:read::0,1000", "E01");
    REPLY("qXfer:siginfo:write::0:aa", "");
    REPLY_HAS("qXfer:features:read:target.xml:0,10000", "<reg name=\"zmm31h\"");
    assert_int_equal(gdb.reply.bytes[0], 'l');
}

static void test_registers(void **state) {
    char g[PACKET_MAX], one[256];
    fake.t = 0x123;
    snprintf(g, sizeof g, "G%s", ask("g"));
    size_t at = 1;
    for (unsigned n = 0; n < gdb.description.n; n++) {
        size_t digits = 2 * reg_size(&gdb.description, n);
        snprintf(one, sizeof one, "p%x", n);
        assert_memory_equal(ask(one), g + at, digits);
        assert_int_equal(gdb.reply.len, digits);
        at += digits;
    }
    assert_int_equal(at, strlen(g));
    REPLY("p0", "2301000000000000");
    snprintf(one, sizeof one, "p%x", gdb.description.n);
    REPLY(one, "E01");
    assert_memory_equal(ask("p20") /* fctrl */, "7f030000", 8);
    assert_memory_equal(ask("p22") /* ftag: one that holds no number, the others empty */, "ffbf0000", 8);
    REPLY("Hgp1092.3ea", "OK");
    REPLY("p1", "ea03000000000000");
    REPLY("Hgp1092.5", "E01");
    REPLY("p1", "ea03000000000000");
    REPLY("P1=0807060504030201", "OK");
    REPLY("p1", "0807060504030201");
    REPLY("P1=08070605040302", "E01");
    REPLY("P1=080706050403020x", "E01");
    REPLY("Hg0", "OK");
    REPLY("p1", "0807060504030201"); /* the same: it is the current one */
    REPLY("Hgp1092.3e8", "OK");
    REPLY("p1", "e803000000000000");
}

static void test_registers_all_written(void **state) {
    char g[PACKET_MAX];
    REPLY("Hgp1092.3e8", "OK");
    size_t n = (size_t)snprintf(g, sizeof g, "G%s", ask("g"));
    for (size_t i = 1; i < n; i++) g[i] = g[i] == '0' ? '1' : '0';
    REPLY(g, "OK");
    const char *back = ask("g");
    size_t at = 0;
    for (unsigned r = 0; r < gdb.description.n; r++) { /* x87's small ones have fewer bits than gdb thinks */
        size_t digits = 2 * reg_size(&gdb.description, r);
        if (r < 32 || r >= 40) assert_memory_equal(back + at, g + 1 + at, digits);
        at += digits;
    }
    REPLY("G0102030405060708", "OK"); /* the first one only */
    REPLY("p0", "0102030405060708");
    REPLY("G00", "E01");
    g[5] = 'z';
    REPLY(g, "E01");
}

static void test_registers_initial(void **state) {
    static struct registers r;
    struct description d;
    uint8_t value[REG_MAX], zeros[REG_MAX] = {0};
    fake_fill(&fake, 0, &r);
    memset(r.xsave + 512, 0, 8); /* everything in its initial state, whatever the bytes say */
    describe(&d, r.xcr0);
    for (unsigned n = 0; n < d.n; n++) {
        assert_true(reg_get(&d, &r, n, value));
        bool special = n == 32 || n == 34 || n == 56; /* fctrl, ftag, mxcsr */
        if (n >= 24 && !special && n != 57 && n != 58 && n != 59) assert_memory_equal(value, zeros, REG_MAX);
        assert_true(reg_set(&d, &r, n, value));
    }
    assert_memory_equal(r.xsave + 512, zeros, 8); /* nothing was changed by writing the same */
    memset(value, 0x55, sizeof value);
    assert_true(reg_set(&d, &r, 40, value)); /* xmm0 */
    assert_int_equal(r.xsave[512], 2);
    assert_true(reg_get(&d, &r, 41, value));
    assert_memory_equal(value, zeros, REG_MAX);
    r.xsave_size = 576; /* without what xcr0 promises */
    assert_false(reg_get(&d, &r, d.n - 1, value));
    assert_false(reg_set(&d, &r, d.n - 1, value));
    r.xsave_size = ~0u;
    for (unsigned n = 0; n < d.n; n++) reg_get(&d, &r, n, value);
    describe(&d, 3);
    assert_int_equal(d.n, 60);
    describe(&d, ~0ull);
    assert_in_range(d.n, 60, DESCRIBED_MAX - 1);
}

static void test_memory(void **state) {
    fake.t = 0x1234;
    REPLY("m404018,8", "3412000000000000");
    REPLY("m404ff8,10", "0000000000000000");
    REPLY("m405000,8", "E01");
    REPLY("m0,8", "E01");
    REPLY("mffffffffffffffff,8", "E01");
    REPLY("m404000,0", "");
    assert_int_equal(strlen(ask("m404000,ffffffffffffffff")), 2 * 4096);
    REPLY("m404000", "E01");
    REPLY("m10000000000000000,1", "E01");
    assert_memory_equal(ask("x401000,3"), "b\x90\x90\x90", 5);
    REPLY("M404018,2:ffff", "OK");
    REPLY("m404018,8", "ffff000000000000");
    REPLY("M404018,3:ffff", "E01");
    REPLY("M401000,1:00", "E01");
    assert_string_equal(ask_bytes("X404018,2:\0#", 12), "OK");
    REPLY("m404018,8", "0023000000000000");
    REPLY("X404018,0:", "OK");
    REPLY("X404018,5:a", "E01");
    STOPS("s", "T05 thread:3e9;"); /* 0x1234 is in turn 46, thread 1 */
    REPLY("m404018,8", "3412000000000000");
}

static void test_running(void **state) {
    REPLY_HAS("?", "T05");
    REPLY_HAS("?", "10:0010400000000000;thread:3e8;");
    STOPS("s", "T05 thread:3e8;");
    assert_int_equal(fake.t, 1);
    STOPS("bs", "T05 thread:3e8;");
    STOPS("bs", "T05 thread:3e8;replaylog:begin;");
    STOPS("c", "T05 thread:3e9;replaylog:end;");
    assert_int_equal(fake.t, 100000);
    STOPS("bc", "T05 thread:3e8;replaylog:begin;");
    STOPS("vCont;s:3e8;c", "T05 thread:3e8;");
    STOPS("vCont;s:3e9", "T05 thread:3e9;"); /* the others run until it is its turn */
    assert_int_equal(fake.t, 101);
    STOPS("vCont;r401000,401010:3e9;c:-1", "T05 thread:3e9;");
    assert_int_equal(fake.t, 116);
    REPLY("Hc3e8", "OK");
    STOPS("bs", "T05 thread:3e8;");
    assert_int_equal(fake.t, 99);
    REPLY("vCont;x", "E01");
    REPLY("vCont", "E01");
    REPLY("vCont;", "E01");
    REPLY("vCont;s:3e8;", "E01");
    REPLY_HAS("vCont;s:77", "replaylog:end;"); /* a replay that fails is no step that could go on */
    REPLY("vCont;C", "E01");
    fake.t = 0, fake.signal_at = 500;
    STOPS("vCont;c", "T1e thread:3ea;");
    REPLY_HAS("qXfer:siginfo:read::0,1000", "l");
    REPLY("QPassSignals:e;1e", "OK");
    fake.t = 0;
    STOPS("vCont;C0b:-1", "T05 thread:3e9;replaylog:end;");
    REPLY("QPassSignals:zz", "E01");
}

static void test_exits(void **state) {
    REPLY("qRcmd,6578697473", "E01");        /* exits */
    REPLY("qRcmd,657869747320656e64", "OK"); /* exits end */
    assert_string_equal(ask("c"), "W03");
    REPLY("g", "E01");
    REPLY("?", "W00");
    STOPS("vRun;", "T05 thread:3e8;");
    REPLY("qRcmd,65786974732073746f70", "OK"); /* exits stop */
    REPLY("vKill;1092", "OK");
    assert_true(gdb.killed);
    REPLY("m404000,1", "E01");
    REPLY("vAttach;7", "E01");
    STOPS("vAttach;1092", "T05 thread:3e8;");
    assert_false(gdb.killed);
    REPLY("D;1092", "OK");
    ask("k");
    assert_true(gdb.silent && gdb.ended && gdb.killed);
}

static void test_breaks(void **state) {
    REPLY("qSupported:swbreak+;hwbreak+", ask("qSupported"));
    REPLY("Z0,401010,1", "OK");
    REPLY("Z0,401010,1", "OK");
    REPLY("Z1,401010,1", "OK");
    assert_int_equal(fake.n_set, 1);
    STOPS("c", "T05 thread:3e8;swbreak:;");
    assert_int_equal(fake.t, 16);
    STOPS("c", "T05 thread:3e9;swbreak:;");
    STOPS("bc", "T05 thread:3e8;swbreak:;");
    REPLY("z0,401010,1", "OK");
    REPLY("z0,401010,1", "OK");
    STOPS("c", "T05 thread:3e9;hwbreak:;");
    REPLY("z1,401010,1", "OK");
    assert_int_equal(fake.n_set, 0);
    fake.t = 0;
    REPLY("Z2,404010,8", "OK");
    STOPS("c", "T05 thread:3e8;watch:404010;");
    assert_int_equal(fake.t, 3);
    STOPS("bc", "T05 thread:3e8;watch:404010;");
    assert_int_equal(fake.t, 2);
    REPLY("z2,404010,8", "OK");
    REPLY("Z3,404010,1", "OK");
    STOPS("c", "T05 thread:3e8;rwatch:404010;");
    REPLY("z3,404010,1", "OK");
    REPLY("Z4,404013,1", "OK"); /* the access begins before it */
    STOPS("c", "T05 thread:3e8;awatch:404013;");
    REPLY("Z5,404010,1", "");
    REPLY("Z2,404010,0", "E01");
    REPLY("Z2,ffffffffffffffff,2", "E01");
    REPLY("Z0,404010", "E01");
    REPLY("z9,404010,1", "");
}

static void test_many_breaks(void **state) {
    char text[64];
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "Z%u,%x,%x", 2 + i % 3, 0x500000 + 8 * i, 1 + i % 7);
        REPLY(text, "OK");
    }
    assert_int_equal(fake.n_set, 5000);
    for (unsigned i = 0; i < 5000; i += 2) {
        snprintf(text, sizeof text, "z%u,%x,%x", 2 + i % 3, 0x500000 + 8 * i, 1 + i % 7);
        REPLY(text, "OK");
    }
    assert_int_equal(fake.n_set, 2500);
    for (unsigned i = 0; i < 5000; i++) {
        uint64_t inside;
        assert_int_equal(breaks_watched(&gdb.breaks, 0x500000 + 8 * i, &inside), i % 2       ? 2 + i % 3
                                                                                 : i == 4998 ? 2 + 4999 % 3
                                                                                             : 2 + (i + 1) % 3);
    }
    REPLY("D", "OK");
    assert_int_equal(fake.n_set, 0);
}

/* rax > 0x1000: reg 0, const16 0x1000, swap, less_signed, end; false before that time */
#define LATER "X9,2600002310002b1427"

static void test_conditions(void **state) {
    REPLY("qSupported:swbreak+", ask("qSupported"));
    REPLY("Z0,401010,1;" LATER, "OK");
    STOPS("c", "T05 thread:3e8;swbreak:;");
    assert_int_equal(fake.t, 6064);
    STOPS("c", "T05 thread:3e9;swbreak:;");
    STOPS("bc", "T05 thread:3e8;swbreak:;");
    assert_int_equal(fake.t, 6064);
    STOPS("bc", "T05 thread:3e8;replaylog:begin;");
    REPLY("Z0,401010,1;X1,27", "OK"); /* wrong: stops, gdb may judge */
    fake.t = 0;
    STOPS("c", "T05 thread:3e8;swbreak:;");
    assert_int_equal(fake.t, 16);
    REPLY("Z0,401010,1;X3,220027X3,220127", "OK"); /* 0, or 1 */
    STOPS("c", "T05 thread:3e9;swbreak:;");
    REPLY("Z0,401010,1;X3,220027;cmds:1,X1,27", "OK");
    fake.t = 15;
    STOPS("s", "T05 thread:3e8;");
    REPLY("Z0,401010,1;X30,00", "E01");
    REPLY("Z0,401010,1;X2,0z27", "E01");
    REPLY("Z0,401010,1;Y", "E01");
    STOPS("c", "T05 thread:3e9;replaylog:end;");
}

/* ---- agent expressions ---- */

static bool agent_read(void *arg, uint64_t addr, void *to, size_t n) {
    if (addr != 0x1000) return false;
    memcpy(to, "\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8", n);
    return true;
}
static bool agent_reg(void *arg, unsigned n, uint64_t *value) {
    *value = n * 3ull;
    return n < 10;
}

static void evaluates(const char *hex, bool fine, uint64_t wanted) {
    uint8_t code[256];
    uint64_t value = 0;
    struct in in = {hex, hex + strlen(hex)};
    long n = in_bytes(&in, code, sizeof code);
    assert_true(n >= 0);
    uint8_t *exact = malloc((size_t)n);
    memcpy(exact, code, (size_t)n);
    assert_int_equal(agent_evaluate(exact, (size_t)n, &(struct agent_world){NULL, agent_read, agent_reg}, &value),
                     fine);
    if (fine) assert_int_equal(value, wanted);
    free(exact);
}

static void test_agent(void **state) {
    evaluates("220522030227", true, 8);
    evaluates("220522030327", true, 2);
    evaluates("220522030427", true, 15);
    evaluates("220722020527", true, 3);
    evaluates("220722000527", false, 0);
    evaluates("25800000000000000022ff16080527", false, 0); /* ext 8: -1; the quotient has no room */
    evaluates("220722020827", true, 1);
    evaluates("220122410927", true, 0);
    evaluates("22ff1608220a0a27", true, ~0ull);
    evaluates("22ff1608223f0b27", true, 1);
    evaluates("22000e27", true, 1);
    evaluates("220c220a0f27", true, 8);
    evaluates("22001227", true, ~0ull);
    evaluates("22052205132827", true, 1);
    evaluates("22ff160822011427", true, 1);
    evaluates("22ff160822011527", true, 0);
    evaluates("2310001727", true, 0xf1);
    evaluates("2310001827", true, 0xf2f1);
    evaluates("2310001a27", true, 0xf8f7f6f5f4f3f2f1);
    evaluates("2310011a27", false, 0);
    evaluates("26000727", true, 21);
    evaluates("26000a27", false, 0);
    evaluates("2201200008220022022927", false, 0); /* into the middle of a constant */
    evaluates("210003", false, 0);                 /* for ever */
    evaluates("210000", false, 0);
    evaluates("2201220222033327", true, 2);
    evaluates("22012202220332022927", true, 3);
    evaluates("2201320127", false, 0);
    evaluates("27", false, 0);
    evaluates("02", false, 0);
    evaluates("2401", false, 0);
    evaluates("0127", false, 0);
    evaluates("22012800", false, 0);
}

/* ---- files, commands ---- */

static void test_files(void **state) {
    char text[128];
    fake.program = "/proc/self/exe";
    REPLY("vFile:setfs:0", "F0");
    REPLY("vFile:open:2f6574632f706173737764,0,0", "F-1,2"); /* /etc/passwd: not in the recording */
    REPLY("vFile:open:2f66616b652f70726f6772616d,1,0", "F-1,1e");
    REPLY("vFile:open:2f66616b652f70726f6772616d,0,0", "F0");
    REPLY("vFile:open:2f66616b652f70726f6772616d,0,0", "F1");
    assert_memory_equal(ask("vFile:pread:0,4,0"),
                        "F4;\x7f"
                        "ELF",
                        7);
    REPLY("vFile:pread:0,4,7fffffff", "F0;");
    REPLY("vFile:pread:0,4,8000000000000000", "F-1,16");
    REPLY_HAS("vFile:fstat:0", "F40;");
    REPLY("vFile:fstat:7", "F-1,9");
    REPLY("vFile:close:0", "F0");
    REPLY("vFile:close:0", "F-1,9");
    REPLY("vFile:close:ffffffff", "F-1,9");
    REPLY("vFile:pread:0,4,0", "F-1,9");
    REPLY("vFile:open:2f70726f632f343234322f6d617073,0,0", "F0"); /* /proc/4242/maps */
    REPLY_HAS("vFile:pread:0,1000,0", "00401000-00402000 r-xp 00000000 00:00 0                   /fake/program\n");
    REPLY("vFile:open:2f70726f632f312f6d617073,0,0", "F-1,2"); /* /proc/1/maps */
    REPLY("vFile:readlink:2f70726f632f343234322f657865", "Fd;/fake/program");
    REPLY_HAS("vFile:stat:2f66616b652f70726f6772616d", "F40;");
    REPLY("vFile:open:2f00,0,0", "F-1,16");
    REPLY("vFile:unlink:2f66616b652f70726f6772616d", "");
    for (int i = 0; i < 100; i++) snprintf(text, sizeof text, "%s", ask("vFile:open:2f66616b652f70726f6772616d,0,0"));
    assert_string_equal(text, "F-1,18");
}

/* monitor TEXT: what the user sees; NULL: it failed */
static const char *monitor(const char *text) {
    static char seen[4096];
    struct out o = {.most = 4096};
    bool fine = monitor_command(&gdb, text, &o);
    snprintf(seen, sizeof seen, "%.*s", (int)o.len, o.bytes ? o.bytes : "");
    out_free(&o);
    return fine ? seen : NULL;
}

/* gdb is told of libraries first; when it goes on, where it is. */
static void test_settling(void **state) {
    ask("qSupported:swbreak+");
    assert_string_equal(monitor("seek 3:4"), "");
    REPLY("s", "T05library:;");
    STOPS("s", "T00 thread:3e8;");
    assert_string_equal(monitor("when"), "Position 3:4:0, thread 1000\n");
    STOPS("s", "T05 thread:3e8;");
    assert_string_equal(monitor("when"), "Position 3:5:0, thread 1000\n");
}

static void test_positions(void **state) {
    char text[POSITION_TEXT];
    struct position p;
    assert_int_equal(position_parse("3.14:15:92", &p), GOAL_POSITION);
    assert_int_equal(p.event, 3ull << POSITION_PROGRAM | 14);
    assert_string_equal(position_text(p, text), "3.14:15:92");
    assert_int_equal(position_parse("14", &p), GOAL_POSITION);
    assert_string_equal(position_text(p, text), "14:0:0");
    position_text((struct position){UINT64_MAX, UINT64_MAX, UINT64_MAX}, text);
    assert_true(strlen(text) < POSITION_TEXT);
}

/* Symbols are asked for one after the other; what gdb does not know, or lies about, gives no address. */
static void test_tls(void **state) {
    REPLY_HAS("qSymbol::", "qSymbol:5f7468726561645f64625f");
    char name[128], text[256];
    for (int i = 0; i < 5; i++) {
        const char *question = i ? ask(text) : ask("qSymbol::");
        assert_int_equal(strncmp(question, "qSymbol:", 8), 0);
        snprintf(name, sizeof name, "%s", question + 8);
        snprintf(text, sizeof text, "qSymbol:%x:%s", 0x404000 + 16 * i, name);
    }
    REPLY(text, "OK");
    REPLY("qGetTLSAddr:3e8,10,0", "E01");
    REPLY("qGetTLSAddr:3e8,10,404000", "E01");
    REPLY("qGetTLSAddr:zz,10,0", "E01");
    REPLY("qSymbol:zz", "OK");
}

static void test_commands(void **state) {
    fake.t = 1234;
    assert_string_equal(monitor("when"), "Position 12:34:0, thread 1000\n");
    assert_string_equal(monitor("info checkpoints"), "No checkpoints.\n");
    assert_string_equal(monitor("checkpoint"), "Checkpoint 1 at 12:34:0\n");
    assert_string_equal(monitor("seek 3:4"), "");
    STOPS("vCont;s:3e8;c", "T00 thread:3e8;");
    assert_int_equal(fake.t, 304);
    assert_string_equal(monitor(" restart 1"), "");
    STOPS("vCont;s:3e8;c", "T00 thread:3e8;");
    assert_int_equal(fake.t, 1234);
    assert_string_equal(monitor("info checkpoints"), "1  12:34:0\n");
    assert_string_equal(monitor("delete checkpoint 1"), "");
    assert_null(monitor("restart 1"));
    assert_null(monitor("restart 1000"));
    assert_null(monitor("restart -1"));
    assert_null(monitor("seek 3:"));
    assert_null(monitor("seek"));
    assert_null(monitor("seek 99999999999999999999"));
    assert_null(monitor("seek 1:2:3:4"));
    assert_non_null(strstr(monitor("seekend"), "Unknown command"));
    assert_string_equal(monitor("seek end"), "");
    STOPS("s", "T00 thread:3e9;");
    assert_string_equal(monitor("seek begin"), "");
    STOPS("s", "T00 thread:3e8;");
    assert_null(monitor("seek 18446744073709551615:1"));
    assert_null(monitor("seek 1."));
    assert_null(monitor("seek 99999999.1"));
    assert_string_equal(monitor("seek 7.1099511627775:1"), "");
    STOPS("s", "T00 thread:3e8;");
    assert_string_equal(monitor("status"), "At 0:0:0; the replay failed: no such position\n");
    assert_string_equal(monitor("info recording"), "info recording\n");
    assert_non_null(strstr(monitor("help"), "seek POS"));
    REPLY("qRcmd,6563686f2061", "6563686f20610a"); /* echo a */
    REPLY("qRcmd,00", "E01");
}

static void test_signals(void **state) {
    static const int pairs[][2] = {{0, 0},    {SIGSEGV, 11}, {SIGBUS, 10}, {SIGUSR1, 30}, {SIGCHLD, 20},
                                   {33, 45},  {63, 75},      {32, 77},     {64, 78},      {16, 143},
                                   {65, 143}, {-1, 143},     {SIGSYS, 12}, {SIGINT, 2},   {SIGURG, 16}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) assert_int_equal(gdb_signal(pairs[i][0]), pairs[i][1]);
}

#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_acks),
        cmocka_unit_test(test_wire_escapes),
        cmocka_unit_test(test_wire_hostile),
        cmocka_unit_test(test_wire_interrupt),
        cmocka_unit_test(test_agent),
        cmocka_unit_test(test_signals),
        ON_FAKE(test_agreements),
        ON_FAKE(test_registers),
        ON_FAKE(test_registers_all_written),
        ON_FAKE(test_registers_initial),
        ON_FAKE(test_memory),
        ON_FAKE(test_running),
        ON_FAKE(test_exits),
        ON_FAKE(test_breaks),
        ON_FAKE(test_many_breaks),
        ON_FAKE(test_conditions),
        ON_FAKE(test_files),
        ON_FAKE(test_settling),
        ON_FAKE(test_positions),
        ON_FAKE(test_tls),
        ON_FAKE(test_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
