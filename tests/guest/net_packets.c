/* Packets of an interface, by rings in memory that the kernel fills (PACKET_RX_RING): all of them, in order, more than the ring has
 * room for; also for who only looks at memory, and behind a fork. With an argument: a ring of packets to be sent. */
#include "guest.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stddef.h>
#include <sys/socket.h>

#define PROTOCOL 0x88b5 /* for experiments: nobody else's packets */
#define BLOCK 16384u
#define BLOCKS 4u
#define FRAME 2048u
#define FRAMES (BLOCK / FRAME * BLOCKS)
#define PACKETS 100u /* more than FRAMES */
#define OWN_BYTES 20u

struct packet {
    pid_t pid;
    unsigned number;
    char rest[900];
};

static pid_t sender;
static int out;
static struct sockaddr_ll lo;

static void send_packet(unsigned number) {
    struct packet p = {.pid = sender, .number = number};
    memset(p.rest, 'a' + (int)(number % 26), sizeof p.rest);
    CHECK(sendto(out, &p, sizeof p - number % 64, 0, (void *)&lo, sizeof lo) > 0);
}

/* Whether it is the one; those of others do not count. */
static bool is_next(const void *at, unsigned len, unsigned *number) {
    struct packet p;
    memcpy(&p, at, offsetof(struct packet, rest) + 1);
    if (p.pid != sender) return true;
    bool fits = p.number == *number && len == sizeof p - *number % 64 && p.rest[0] == (char)('a' + *number % 26);
    ++*number;
    return fits;
}

struct ring {
    int s, version;
    char *at;
    unsigned next;   /* item */
    unsigned number; /* of the next packet */
};

static volatile uint32_t *status_of(const struct ring *r) {
    if (r->version != TPACKET_V3) return (volatile uint32_t *)(r->at + r->next % FRAMES * FRAME);
    struct tpacket_block_desc *b = (void *)(r->at + r->next % BLOCKS * BLOCK);
    return (volatile uint32_t *)&b->hdr.bh1.block_status;
}

static bool take_item(struct ring *r) {
    bool ok = true;
    if (r->version == TPACKET_V3) {
        struct tpacket_block_desc *b = (void *)(r->at + r->next % BLOCKS * BLOCK);
        char *own = (char *)b + b->offset_to_priv;
        CHECK(*own == 0 || *own == 'x'); /* as it was left */
        *own = 'x';
        struct tpacket3_hdr *h = (void *)((char *)b + b->hdr.bh1.offset_to_first_pkt);
        for (unsigned i = 0; i < b->hdr.bh1.num_pkts; i++, h = (void *)((char *)h + h->tp_next_offset))
            ok &= is_next((char *)h + h->tp_net, h->tp_snaplen, &r->number);
    } else if (r->version == TPACKET_V2) {
        struct tpacket2_hdr *h = (void *)(r->at + r->next % FRAMES * FRAME);
        ok = is_next((char *)h + h->tp_net, h->tp_snaplen, &r->number);
    } else {
        struct tpacket_hdr *h = (void *)(r->at + r->next % FRAMES * FRAME);
        ok = is_next((char *)h + h->tp_net, h->tp_snaplen, &r->number);
    }
    *status_of(r) = TP_STATUS_KERNEL;
    r->next++;
    return ok;
}

static int poll_ms(const struct ring *r, int ms) { return poll(&(struct pollfd){r->s, POLLIN, 0}, 1, ms); }

static bool await_item(const struct ring *r) {
    for (int i = 0; i < 50 && !(*status_of(r) & TP_STATUS_USER); i++) poll_ms(r, 100);
    return *status_of(r) & TP_STATUS_USER;
}

static void make(struct ring *r, int version) {
    struct tpacket_req3 q = {BLOCK, BLOCKS, FRAME, FRAMES, 10, OWN_BYTES, 0};
    *r = (struct ring){.s = socket(AF_PACKET, SOCK_DGRAM, 0), .version = version};
    CHECK(setsockopt(r->s, SOL_PACKET, PACKET_VERSION, &version, sizeof version) == 0);
    CHECK(setsockopt(r->s, SOL_PACKET, PACKET_RX_RING, &q,
                     version == TPACKET_V3 ? sizeof q : sizeof(struct tpacket_req)) == 0);
    CHECK(mmap(NULL, BLOCK, PROT_READ, MAP_SHARED, r->s, 0) == MAP_FAILED && errno == EINVAL); /* all or nothing */
    r->at = mmap(NULL, BLOCK * BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, r->s, 0);
    if (r->at == MAP_FAILED) perror("mmap"), exit(1);
    CHECK(bind(r->s, (void *)&lo, sizeof lo) == 0);
    CHECK(poll_ms(r, 0) == 0);
}

/* A ring goes when nobody has it mapped. */
static void drop(struct ring *r) {
    struct tpacket_req3 none = {0};
    CHECK(setsockopt(r->s, SOL_PACKET, PACKET_RX_RING, &none, sizeof none) == -1 && errno == EBUSY);
    CHECK(munmap(r->at, BLOCK * BLOCKS) == 0);
    CHECK(setsockopt(r->s, SOL_PACKET, PACKET_RX_RING, &none, sizeof none) == 0);
    close(r->s);
}

static void read_all(int version) {
    struct ring r;
    make(&r, version);
    bool ok = true;
    for (unsigned sent = 0; sent < PACKETS && ok; sent++) {
        send_packet(sent);
        if (sent % 20 == 19)
            while (ok && r.number <= sent) ok = await_item(&r) && take_item(&r);
    }
    CHECK(poll_ms(&r, 0) == 0); /* all have been given back */
    printf("version %d: %u packets, in order: %d\n", version + 1, r.number, ok);
    drop(&r);
}

/* The packet comes while nobody makes a call here. */
static void spin(void) {
    struct ring r;
    make(&r, TPACKET_V2);
    pid_t pid = fork();
    if (pid == 0) {
        sleep_ms(100);
        send_packet(0);
        _exit(0);
    }
    for (uint64_t i = 0; i < 10ull << 30 && !(*status_of(&r) & TP_STATUS_USER); i++) {}
    bool ok = take_item(&r);
    printf("without a call: %u, %d, child: %s\n", r.number, ok, wait_text(pid));
    drop(&r);
}

/* As daemons do: who goes on is a child. */
static void inherit(void) {
    struct ring r;
    make(&r, TPACKET_V3);
    pid_t pid = fork();
    if (pid == 0) {
        send_packet(0);
        bool ok = await_item(&r) && take_item(&r);
        printf("in a child: %u, %d\n", r.number, ok);
        _exit(0);
    }
    printf("child: %s\n", wait_text(pid));
    CHECK(munmap(r.at, BLOCK * BLOCKS) == 0);
    close(r.s);
}

static int to_be_sent(void) {
    struct tpacket_req q = {BLOCK, BLOCKS, FRAME, FRAMES};
    bool made = setsockopt(out, SOL_PACKET, PACKET_TX_RING, &q, sizeof q) == 0;
    CHECK(made || errno == ENOPROTOOPT);
    puts(made ? "a ring" : "no ring");
    return finish();
}

int main(int argc, char **argv) {
    out = socket(AF_PACKET, SOCK_DGRAM, 0);
    lo = (struct sockaddr_ll){
        .sll_family = AF_PACKET, .sll_protocol = htons(PROTOCOL), .sll_ifindex = (int)if_nametoindex("lo")};
    if (out < 0) return 77; /* not allowed */
    if (argc > 1) return to_be_sent();
    sender = getpid();
    for (int version = TPACKET_V1; version <= TPACKET_V3; version++) read_all(version);
    spin();
    inherit();
    return finish();
}
