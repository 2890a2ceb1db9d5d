/* Requests to network devices, in a network namespace of their own: bridges, tunnels, what drivers tell. */
#include "guest.h"

#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_bridge.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static int sock;

static struct ifreq named(const char *name) {
    struct ifreq r = {{{0}}, {{0}}};
    strcpy(r.ifr_name, name);
    return r;
}

static void bridges(void) {
    char name[IFNAMSIZ] = "tested0";
    unsigned long args[4] = {BRCTL_GET_VERSION, 0, 0, 0};
    if (ioctl(sock, SIOCBRADDBR, name) != 0) {
        printf("no bridges here\n");
        return;
    }
    printf("version %d\n", ioctl(sock, SIOCGIFBR, args));
    int list[16];
    memset(list, 0xff, sizeof list);
    struct ifreq r = named(name);
    CHECK(ioctl(sock, SIOCGIFINDEX, &r) == 0);
    args[0] = BRCTL_GET_BRIDGES, args[1] = (unsigned long)list, args[2] = 16;
    CHECK(ioctl(sock, SIOCGIFBR, args) == 1);
    CHECK(list[0] == r.ifr_ifindex && list[1] == -1);
    CHECK(ioctl(sock, SIOCBRDELBR, name) == 0);
}

static void drivers(void) {
    struct ethtool_value link = {.cmd = ETHTOOL_GLINK, .data = 77};
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq r = named("lo");
    r.ifr_data = (void *)&link;
    CHECK(ioctl(sock, SIOCETHTOOL, &r) == 0);
    printf("lo has a link: %u\n", link.data);
    r.ifr_data = (void *)&info;
    int ret = ioctl(sock, SIOCETHTOOL, &r);
    printf("driver of lo: %s\n", ret == 0 ? info.driver : strerror(errno));
    char essid[40] = "";
    struct {
        char name[16];
        void *at;
        uint16_t len, flags;
        char rest[4];
    } wireless = {.name = "lo", .at = essid, .len = 32};
    ret = ioctl(sock, 0x8b1b /* SIOCGIWESSID */, &wireless);
    printf("wireless network of lo: %d %s\n", ret, ret ? strerror(errno) : essid);
}

static uint32_t sum(const void *p, size_t n) {
    const unsigned char *b = p;
    uint32_t h = 0;
    while (n--) h = h * 31 + *b++;
    return h;
}

/* Answers with lists; the request itself comes back, too, with its name cut. */
static void lists(void) {
    struct ifreq r = named("lo");
    union {
        struct ethtool_sset_info sets;
        struct ethtool_gstrings strings;
        struct ethtool_perm_addr address;
        struct ethtool_gfeatures features;
        char all[4096];
    } u;
    memset(&u, 0xaa, sizeof u);
    memset(r.ifr_name + 3, 0xff, IFNAMSIZ - 3);
    r.ifr_data = (void *)&u;
    u.sets.cmd = ETHTOOL_GSSET_INFO;
    u.sets.reserved = 0;
    u.sets.sset_mask = 1 << ETH_SS_FEATURES;
    CHECK(ioctl(sock, SIOCETHTOOL, &r) == 0);
    printf("end of the name: %d, features: %u\n", r.ifr_name[IFNAMSIZ - 1], u.sets.data[0]);
    r.ifr_name[IFNAMSIZ - 1] = 0;
    CHECK(u.sets.data[0] * ETH_GSTRING_LEN < sizeof u);
    uint32_t n = u.sets.data[0];
    u.strings.cmd = ETHTOOL_GSTRINGS;
    u.strings.string_set = ETH_SS_FEATURES;
    u.strings.len = n;
    int ret = ioctl(sock, SIOCETHTOOL, &r);
    printf("names: %d %u %.32s %x\n", ret, u.strings.len, u.strings.data, sum(&u, sizeof u));
    u.address.cmd = ETHTOOL_GPERMADDR;
    u.address.size = 32;
    ret = ioctl(sock, SIOCETHTOOL, &r);
    printf("address: %d %u %x\n", ret, u.address.size, sum(&u, sizeof u));
    u.features.cmd = ETHTOOL_GFEATURES;
    u.features.size = 2;
    ret = ioctl(sock, SIOCETHTOOL, &r);
    printf("features: %d %u %x\n", ret, u.features.size, sum(&u, sizeof u));
}

static void tunnels(void) {
    int fd = open("/dev/net/tun", O_RDWR), size = 0;
    if (fd < 0) {
        printf("no tunnels here\n");
        return;
    }
    struct ifreq r = named("tested%d");
    r.ifr_flags = IFF_TUN | IFF_NO_PI;
    CHECK(ioctl(fd, TUNSETIFF, &r) == 0);
    printf("tunnel %s\n", r.ifr_name);
    CHECK(ioctl(fd, TUNGETSNDBUF, &size) == 0 && size > 0);
    size = 65536;
    CHECK(ioctl(fd, TUNSETSNDBUF, &size) == 0);
    CHECK(ioctl(fd, TUNGETSNDBUF, &size) == 0 && size == 65536);
    close(fd);
}

int main(void) {
    if (unshare(CLONE_NEWNET) != 0) return 77;
    sock = socket(AF_INET, SOCK_DGRAM, 0);
    bridges();
    drivers();
    lists();
    tunnels();
    return finish();
}
