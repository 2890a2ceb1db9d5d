/* ioctl: what a request writes.
 * A request's own size and direction are trusted only for families whose structures hold no pointers; others may write
 * anywhere. */
#include <asm/ioctls.h>
#include <linux/fs.h>
#include <linux/ioctl.h>
#include <linux/sockios.h>

#include "inproc/sys.h"
#include "inproc/types.h"
#include "sphere/sys/model.h"

struct request {
    uint32_t nr;
    uint32_t writes; /* bytes at the argument */
};

#define IFREQ 40 /* struct ifreq */
#define NOTHING 0

/* Requests from before sizes were part of the number, and common ones of today. */
static const struct request known[] = {
    /* listeners of seccomp */
    {0xc0502100 /* SECCOMP_IOCTL_NOTIF_RECV */, 80},
    {0xc0182101 /* SECCOMP_IOCTL_NOTIF_SEND */, NOTHING},
    {0x40082102 /* SECCOMP_IOCTL_NOTIF_ID_VALID */, NOTHING},
    {0x80082102 /* the same, as it was first */, NOTHING},
    {0x40182103 /* SECCOMP_IOCTL_NOTIF_ADDFD */, NOTHING},
    {0x40082104 /* SECCOMP_IOCTL_NOTIF_SET_FLAGS */, NOTHING},
    /* terminals */
    {TCGETS, 36},
    {TCSETS, NOTHING},
    {TCSETSW, NOTHING},
    {TCSETSF, NOTHING},
    {TCGETA, 18},
    {TCSETA, NOTHING},
    {TCSETAW, NOTHING},
    {TCSETAF, NOTHING},
    {0x802c542a /* TCGETS2 */, 44},
    {0x402c542b /* TCSETS2 */, NOTHING},
    {0x402c542c /* TCSETSW2 */, NOTHING},
    {0x402c542d /* TCSETSF2 */, NOTHING},
    {TCSBRK, NOTHING},
    {TCSBRKP, NOTHING},
    {TCXONC, NOTHING},
    {TCFLSH, NOTHING},
    {TIOCEXCL, NOTHING},
    {TIOCNXCL, NOTHING},
    {TIOCSCTTY, NOTHING},
    {TIOCNOTTY, NOTHING},
    {TIOCGPGRP, 4},
    {TIOCSPGRP, NOTHING},
    {TIOCGSID, 4},
    {TIOCOUTQ, 4},
    {TIOCSTI, NOTHING},
    {TIOCGWINSZ, 8},
    {TIOCSWINSZ, NOTHING},
    {TIOCMGET, 4},
    {TIOCMBIS, NOTHING},
    {TIOCMBIC, NOTHING},
    {TIOCMSET, NOTHING},
    {TIOCMIWAIT, NOTHING},
    {TIOCGICOUNT, 80},
    {TIOCGSOFTCAR, 4},
    {TIOCSSOFTCAR, NOTHING},
    {TIOCGSERIAL, 72},
    {TIOCSSERIAL, NOTHING},
    {TIOCGRS485, 32},
    {TIOCSRS485, 32},
    {TIOCCONS, NOTHING},
    {TIOCPKT, NOTHING},
    {TIOCGETD, 4},
    {TIOCSETD, NOTHING},
    {TIOCSBRK, NOTHING},
    {TIOCCBRK, NOTHING},
    {TIOCGPTN, 4},
    {TIOCSPTLCK, NOTHING},
    {TIOCGPTPEER, NOTHING},
    {TIOCGDEV, 4},
    {TIOCGPKT, 4},
    {TIOCGPTLCK, 4},
    {TIOCGEXCL, 4},
    {TIOCSIG, NOTHING},
    {TIOCVHANGUP, NOTHING},
    {TIOCGLCKTRMIOS, 36},
    {TIOCSLCKTRMIOS, NOTHING},
    {TIOCSERGETLSR, 4},
    {0x4b31 /* KDGETLED */, 1},
    {0x4b32 /* KDSETLED */, NOTHING},
    {0x4b33 /* KDGKBTYPE */, 1},
    {0x4b3a /* KDSETMODE */, NOTHING},
    {0x4b3b /* KDGETMODE */, 4},
    {0x4b44 /* KDGKBMODE */, 4},
    {0x4b45 /* KDSKBMODE */, NOTHING},
    {0x5600 /* VT_OPENQRY */, 4},
    {0x5601 /* VT_GETMODE */, 8},
    {0x5602 /* VT_SETMODE */, NOTHING},
    {0x5603 /* VT_GETSTATE */, 6},
    {0x5605 /* VT_RELDISP */, NOTHING},
    {0x5606 /* VT_ACTIVATE */, NOTHING},
    {0x5607 /* VT_WAITACTIVE */, NOTHING},
    {0x5608 /* VT_DISALLOCATE */, NOTHING},
    /* any descriptor */
    {FIONREAD, 4},
    {FIONBIO, NOTHING},
    {FIOASYNC, NOTHING},
    {FIONCLEX, NOTHING},
    {FIOCLEX, NOTHING},
    {FIOQSIZE, 8},
    /* sockets */
    {FIOSETOWN, NOTHING},
    {SIOCSPGRP, NOTHING},
    {FIOGETOWN, 4},
    {SIOCGPGRP, 4},
    {SIOCATMARK, 4},
    {0x8906 /* SIOCGSTAMP */, 16},
    {0x8907 /* SIOCGSTAMPNS */, 16},
    {0x80108906 /* SIOCGSTAMP_NEW */, 16},
    {0x80108907 /* SIOCGSTAMPNS_NEW */, 16},
    {SIOCOUTQNSD, 4},
    {SIOCGIFNAME, IFREQ},
    {SIOCGIFFLAGS, IFREQ},
    {SIOCGIFADDR, IFREQ},
    {SIOCGIFDSTADDR, IFREQ},
    {SIOCGIFBRDADDR, IFREQ},
    {SIOCGIFNETMASK, IFREQ},
    {SIOCGIFMETRIC, IFREQ},
    {SIOCGIFMEM, IFREQ},
    {SIOCGIFMTU, IFREQ},
    {SIOCGIFHWADDR, IFREQ},
    {SIOCGIFINDEX, IFREQ},
    {SIOCGIFPFLAGS, IFREQ},
    {SIOCGIFTXQLEN, IFREQ},
    {SIOCGIFMAP, IFREQ},
    {0x8947 /* SIOCGMIIPHY */, IFREQ},
    {0x8948 /* SIOCGMIIREG */, IFREQ},
    {0x8949 /* SIOCSMIIREG */, NOTHING},
    {SIOCGARP, 68},
    {SIOCSIFFLAGS, NOTHING},
    {SIOCSIFADDR, NOTHING},
    {SIOCSIFDSTADDR, NOTHING},
    {SIOCSIFBRDADDR, NOTHING},
    {SIOCSIFNETMASK, NOTHING},
    {SIOCSIFMETRIC, NOTHING},
    {SIOCSIFMTU, NOTHING},
    {SIOCSIFHWADDR, NOTHING},
    {SIOCSIFNAME, IFREQ},
    {SIOCSIFTXQLEN, NOTHING},
    {SIOCADDRT, NOTHING},
    {SIOCDELRT, NOTHING},
    {0x89a0 /* SIOCBRADDBR */, NOTHING},
    {0x89a1 /* SIOCBRDELBR */, NOTHING},
    {0x89a2 /* SIOCBRADDIF */, NOTHING},
    {0x89a3 /* SIOCBRDELIF */, NOTHING},
    {SIOCGIFENCAP, IFREQ},
    {SIOCSIFENCAP, NOTHING},
    {SIOCGIFSLAVE, IFREQ},
    {SIOCSIFSLAVE, NOTHING},
    {SIOCSIFHWBROADCAST, NOTHING},
    {SIOCADDMULTI, NOTHING},
    {SIOCDELMULTI, NOTHING},
    {SIOCSIFPFLAGS, NOTHING},
    {SIOCSIFMEM, NOTHING},
    {SIOCSIFMAP, NOTHING},
    {SIOCSIFLINK, NOTHING},
    {SIOCDIFADDR, NOTHING},
    {SIOCDARP, NOTHING},
    {SIOCSARP, NOTHING},
    {0x8b01 /* SIOCGIWNAME */, 32},
    {0x8b05 /* SIOCGIWFREQ */, 32},
    {0x8b07 /* SIOCGIWMODE */, 32},
    {0x8b09 /* SIOCGIWSENS */, 32},
    {0x8b15 /* SIOCGIWAP */, 32},
    {0x8b21 /* SIOCGIWRATE */, 32},
    {0x8b27 /* SIOCGIWTXPOW */, 32},
    {0x400454c8 /* TUNSETNOCSUM */, NOTHING},
    {0x400454c9 /* TUNSETDEBUG */, NOTHING},
    {0x400454cd /* TUNSETLINK */, NOTHING},
    {0x400454d1 /* TUNSETTXFILTER */, NOTHING},
    {0x800454d3 /* TUNGETSNDBUF */, 4},
    {0x400454d4 /* TUNSETSNDBUF */, NOTHING},
    {0x401054d5 /* TUNATTACHFILTER */, NOTHING},
    {0x401054d6 /* TUNDETACHFILTER */, NOTHING},
    {0x400454d9 /* TUNSETQUEUE */, NOTHING},
    {0x400454da /* TUNSETIFINDEX */, NOTHING},
    {0x801054db /* TUNGETFILTER */, 16},
    {0x400454dc /* TUNSETVNETLE */, NOTHING},
    {0x800454dd /* TUNGETVNETLE */, 4},
    {0x400454de /* TUNSETVNETBE */, NOTHING},
    {0x800454df /* TUNGETVNETBE */, 4},
    {0x400454e2 /* TUNSETCARRIER */, NOTHING},
    {0x54e3 /* TUNGETDEVNETNS */, NOTHING},
    {0x400454ca /* TUNSETIFF */, IFREQ},
    {0x400454cb /* TUNSETPERSIST */, NOTHING},
    {0x400454cc /* TUNSETOWNER */, NOTHING},
    {0x400454ce /* TUNSETGROUP */, NOTHING},
    {0x800454cf /* TUNGETFEATURES */, 4},
    {0x400454d0 /* TUNSETOFFLOAD */, NOTHING},
    {0x800454d2 /* TUNGETIFF */, IFREQ},
    {0x800454d7 /* TUNGETVNETHDRSZ */, 4},
    {0x400454d8 /* TUNSETVNETHDRSZ */, NOTHING},
    {0x40088a01 /* EPIOCSPARAMS */, NOTHING},
    {0x80088a02 /* EPIOCGPARAMS */, 8},
    /* files and block devices */
    {FIBMAP, 4},
    {FIGETBSZ, 4},
    {FICLONE, NOTHING},
    {FICLONERANGE, NOTHING},
    {FS_IOC_GETFLAGS, 8},
    {FS_IOC_SETFLAGS, NOTHING},
    {FS_IOC_GETVERSION, 8},
    {FS_IOC_SETVERSION, NOTHING},
    {FS_IOC_GETFSLABEL, FSLABEL_MAX},
    {FS_IOC_SETFSLABEL, NOTHING},
    {0x80111500 /* FS_IOC_GETFSUUID */, 17},
    {FIFREEZE, NOTHING},
    {FITHAW, NOTHING},
    {FITRIM, sizeof(struct fstrim_range)},
    {FS_IOC_FSGETXATTR, sizeof(struct fsxattr)},
    {FS_IOC_FSSETXATTR, NOTHING},
    {BLKROGET, 4},
    {BLKGETSIZE, 8},
    {BLKFLSBUF, NOTHING},
    {BLKSSZGET, 4},
    {BLKBSZGET, 8},
    {BLKGETSIZE64, 8},
    {BLKROSET, NOTHING},
    {BLKRRPART, NOTHING},
    {BLKRASET, NOTHING},
    {BLKRAGET, 8},
    {BLKFRASET, NOTHING},
    {BLKFRAGET, 8},
    {BLKSECTGET, 2},
    {BLKBSZSET, NOTHING},
    {BLKDISCARD, NOTHING},
    {BLKSECDISCARD, NOTHING},
    {BLKZEROOUT, NOTHING},
    {BLKIOMIN, 4},
    {BLKIOOPT, 4},
    {BLKALIGNOFF, 4},
    {BLKPBSZGET, 4},
    {BLKDISCARDZEROES, 4},
    {BLKROTATIONAL, 2},
    {0x1269 /* BLKPG */, NOTHING},
    {0x80081280 /* BLKGETDISKSEQ */, 8},
    {0x80041284 /* BLKGETZONESZ */, 4},
    {0x80041285 /* BLKGETNRZONES */, 4},
    {0x301 /* HDIO_GETGEO */, 16},
    {0x30d /* HDIO_GET_IDENTITY */, 512},
    {0x80200204 /* FDGETPRM */, 32},
    {0x80280215 /* FDGETFDCSTAT */, 40},
    {0x2282 /* SG_GET_VERSION_NUM */, 4},
    {0x5305 /* CDROMREADTOCHDR */, 2},
    {0x5306 /* CDROMREADTOCENTRY */, 12},
    {0x5309 /* CDROMEJECT */, NOTHING},
    {0x5310 /* CDROMMULTISESSION */, 8},
    {0x5319 /* CDROMCLOSETRAY */, NOTHING},
    {0x5320 /* CDROM_SET_OPTIONS */, NOTHING},
    {0x5321 /* CDROM_CLEAR_OPTIONS */, NOTHING},
    {0x5325 /* CDROM_MEDIA_CHANGED */, NOTHING},
    {0x5326 /* CDROM_DRIVE_STATUS */, NOTHING},
    {0x5327 /* CDROM_DISC_STATUS */, NOTHING},
    {0x5329 /* CDROM_LOCKDOOR */, NOTHING},
    {0x5331 /* CDROM_GET_CAPABILITY */, NOTHING},
    {0x5382 /* SCSI_IOCTL_GET_IDLUN */, 8},
    {0x5386 /* SCSI_IOCTL_GET_BUS_NUMBER */, 4},
    {0x5394 /* CDROM_NEXT_WRITABLE */, 8},
    {0x5395 /* CDROM_LAST_WRITTEN */, 8},
    {0x4c00 /* LOOP_SET_FD */, NOTHING},
    {0x4c01 /* LOOP_CLR_FD */, NOTHING},
    {0x4c02 /* LOOP_SET_STATUS */, NOTHING},
    {0x4c03 /* LOOP_GET_STATUS */, 168},
    {0x4c04 /* LOOP_SET_STATUS64 */, NOTHING},
    {0x4c05 /* LOOP_GET_STATUS64 */, 232},
    {0x4c06 /* LOOP_CHANGE_FD */, NOTHING},
    {0x4c07 /* LOOP_SET_CAPACITY */, NOTHING},
    {0x4c08 /* LOOP_SET_DIRECT_IO */, NOTHING},
    {0x4c09 /* LOOP_SET_BLOCK_SIZE */, NOTHING},
    {0x4c0a /* LOOP_CONFIGURE */, NOTHING},
    {0x4c80 /* LOOP_CTL_ADD */, NOTHING},
    {0x4c81 /* LOOP_CTL_REMOVE */, NOTHING},
    {0x4c82 /* LOOP_CTL_GET_FREE */, NOTHING},
    /* name spaces, sockets of virtual machines, watches, timers, random numbers */
    {0xb701 /* NS_GET_USERNS */, NOTHING},
    {0xb702 /* NS_GET_PARENT */, NOTHING},
    {0xb703 /* NS_GET_NSTYPE */, NOTHING},
    {0xb704 /* NS_GET_OWNER_UID */, 4},
    {0x8008b705 /* NS_GET_MNTNS_ID */, 8},
    {0x7b9 /* IOCTL_VM_SOCKETS_GET_LOCAL_CID */, 4},
    {0x40044900 /* INOTIFY_IOC_SETNEXTWD */, NOTHING},
    {0x40085400 /* TFD_IOC_SET_TICKS */, NOTHING},
    {0x80045200 /* RNDGETENTCNT */, 4},
    {0x40045201 /* RNDADDTOENTCNT */, NOTHING},
    /* performance counters */
    {0x2400 /* PERF_EVENT_IOC_ENABLE */, NOTHING},
    {0x2401 /* PERF_EVENT_IOC_DISABLE */, NOTHING},
    {0x2402 /* PERF_EVENT_IOC_REFRESH */, NOTHING},
    {0x2403 /* PERF_EVENT_IOC_RESET */, NOTHING},
    {0x40082404 /* PERF_EVENT_IOC_PERIOD */, NOTHING},
    {0x2405 /* PERF_EVENT_IOC_SET_OUTPUT */, NOTHING},
    {0x40082406 /* PERF_EVENT_IOC_SET_FILTER */, NOTHING},
    {0x80082407 /* PERF_EVENT_IOC_ID */, 8},
    {0x40042409 /* PERF_EVENT_IOC_PAUSE_OUTPUT */, NOTHING},
    {0x4008240b /* PERF_EVENT_IOC_MODIFY_ATTRIBUTES */, NOTHING},
};

/* Families without pointers in their structures, by the letter of _IOC_TYPE: input devices, joysticks, clocks, watchdogs,
 * userfaultfd, process descriptors. */
static const uint8_t plain_families[] = {'E', 'j', 'p', 'W', 0xaa, 0xff};

/* struct ifconf: a length and where to put the list */
static void interface_list(gaddr arg, struct writes *w) {
    struct {
        uint32_t len, pad;
        uint64_t list;
    } conf;
    if (!writes_read(w, &conf, arg, sizeof conf)) return;
    writes_range(w, arg, sizeof conf);
    writes_range(w, conf.list, conf.len);
}

/* A head, with the number of entries behind it as a 32-bit (16-bit: struct file_dedupe_range) word at `count_at`. */
static void counted_list(gaddr arg, size_t head, size_t count_at, size_t count_size, size_t entry, struct writes *w) {
    uint32_t n = 0;
    if (writes_read(w, &n, arg + count_at, count_size)) writes_range(w, arg, head + (uint64_t)n * entry);
}

/* Device mapper: struct dm_ioctl, whose data_size says how much room there is, itself included. */
static void device_mapper(gaddr arg, struct writes *w) {
    uint32_t room = 0;
    if (writes_read(w, &room, arg + 12, sizeof room)) writes_range(w, arg, room);
}

/* The old interface to bridges: three or four words, of which the first is the request and the second where results go. */
static void bridge(gaddr args, struct writes *w) {
    enum { GET_VERSION, GET_BRIDGES, ADD_BRIDGE, DEL_BRIDGE };
    uint64_t v[3];
    if (!writes_read(w, v, args, sizeof v)) return;
    if (v[0] == GET_BRIDGES) writes_range(w, v[1], v[2] < 4096 ? v[2] * 4 : 0);
}

enum { SIOCETHTOOL_ = 0x8946, ETHTOOL_GSSET_INFO_ = 0x37 };

/* How many strings (or statistics) of a kind the driver has; what the program says of it does not bind the kernel. */
static uint32_t ethtool_count(uint64_t fd, gaddr ifreq, uint32_t set, struct writes *w) {
    struct {
        uint32_t request, pad;
        uint64_t sets;
        uint32_t n;
    } ask = {.request = ETHTOOL_GSSET_INFO_, .sets = set < 64 ? 1ull << set : 0};
    uint64_t r[IFREQ / 8];
    if (!writes_read(w, r, ifreq, sizeof r)) return 0;
    r[2] = (uint64_t)&ask;
    return SYS(ioctl, fd, SIOCETHTOOL_, r) == 0 && ask.sets ? ask.n : 0;
}

/* Requests with a list whose length the program names, or the driver. */
static bool ethtool_list(uint64_t fd, gaddr ifreq, gaddr at, uint32_t request, struct writes *w) {
    static const struct {
        uint32_t request, header, count_at, size;
    } lists[] = {
        {0x04 /* GREGS */, 12, 8, 1},          {0x0b /* GEEPROM */, 16, 12, 1},  {0x20 /* GPERMADDR */, 8, 4, 1},
        {0x43 /* GMODULEEEPROM */, 16, 12, 1}, {0x3a /* GFEATURES */, 8, 4, 16},
    };
    enum { GSTRINGS = 0x1b, GSTATS = 0x1d, STATS = 1 };
    uint32_t n = 0;
    uint64_t sets;
    switch (request) {
    case ETHTOOL_GSSET_INFO_:
        if (!writes_read(w, &sets, at + 8, 8)) return true;
        for (; sets; sets &= sets - 1) n++;
        writes_range(w, at, 16 + 4 * n);
        return true;
    case GSTRINGS:
        if (writes_read(w, &n, at + 4, 4)) writes_range(w, at, 12 + 32ull * ethtool_count(fd, ifreq, n, w));
        return true;
    case GSTATS: writes_range(w, at, 8 + 8ull * ethtool_count(fd, ifreq, STATS, w)); return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        if (lists[i].request == request) {
            if (writes_read(w, &n, at + lists[i].count_at, 4))
                writes_range(w, at, lists[i].header + (uint64_t)lists[i].size * n);
            return true;
        }
    return false;
}

/* struct ifreq, which comes back with its name cut, and a pointer to a request, whose size follows from its number. Those
 * that are not known cannot be told. */
static void ethtool(uint64_t fd, gaddr ifreq, struct writes *w) {
    static const struct request sizes[] = {
        {0x01 /* GSET */, 44},         {0x02 /* SSET */, NOTHING},
        {0x03 /* GDRVINFO */, 196},    {0x05 /* GWOL */, 20},
        {0x06 /* SWOL */, NOTHING},    {0x07 /* GMSGLVL */, 8},
        {0x08 /* SMSGLVL */, NOTHING}, {0x0a /* GLINK */, 8},
        {0x0e /* GCOALESCE */, 92},    {0x0f /* SCOALESCE */, NOTHING},
        {0x10 /* GRINGPARAM */, 36},   {0x11 /* SRINGPARAM */, NOTHING},
        {0x12 /* GPAUSEPARAM */, 16},  {0x13 /* SPAUSEPARAM */, NOTHING},
        {0x14 /* GRXCSUM */, 8},       {0x15 /* SRXCSUM */, NOTHING},
        {0x16 /* GTXCSUM */, 8},       {0x17 /* STXCSUM */, NOTHING},
        {0x18 /* GSG */, 8},           {0x19 /* SSG */, NOTHING},
        {0x1e /* GTSO */, 8},          {0x1f /* STSO */, NOTHING},
        {0x21 /* GUFO */, 8},          {0x22 /* SUFO */, NOTHING},
        {0x23 /* GGSO */, 8},          {0x24 /* SGSO */, NOTHING},
        {0x25 /* GFLAGS */, 8},        {0x26 /* SFLAGS */, NOTHING},
        {0x2b /* GGRO */, 8},          {0x2c /* SGRO */, NOTHING},
        {0x3c /* GCHANNELS */, 36},    {0x3d /* SCHANNELS */, NOTHING},
        {0x2d /* GRXRINGS */, 192},    {0x41 /* GET_TS_INFO */, 44},
        {0x42 /* GMODULEINFO */, 44},  {0x44 /* GEEE */, 40},
        {0x45 /* SEEE */, NOTHING},
    };
    enum { GLINKSETTINGS = 0x4c, SETTINGS = 48, MASK_WORDS_AT = 15, MASKS = 3 };
    uint64_t at;
    uint32_t request;
    int8_t words = 0;
    writes_range(w, ifreq, IFREQ);
    if (!writes_read(w, &at, ifreq + 16, 8) || !writes_read(w, &request, at, 4)) return;
    if (ethtool_list(fd, ifreq, at, request, w)) return;
    if (request == GLINKSETTINGS) {
        if (!writes_read(w, &words, at + MASK_WORDS_AT, 1)) return;
        writes_range(w, at, SETTINGS + MASKS * 4 * (uint64_t)(words > 0 ? words : 0));
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (sizes[i].nr == request) {
            writes_range(w, at, sizes[i].writes);
            return;
        }
    w->anywhere(w);
}

#define WIRELESS_FIRST 0x8b00
#define WIRELESS_LAST 0x8b2d

/* struct iwreq: a name, and a value or a pointer to one. Even numbers set. */
static void wireless(uint32_t nr, gaddr iwreq, struct writes *w) {
    enum { IWREQ = 32, NAME_MOST = 33, RANGE_MOST = 1024 };
    uint64_t at;
    if (!(nr & 1) || !writes_read(w, &at, iwreq + 16, 8)) return;
    writes_range(w, iwreq, IWREQ);
    switch (nr) {
    case 0x8b0b /* SIOCGIWRANGE */: writes_range(w, at, RANGE_MOST); break;
    case 0x8b1b /* SIOCGIWESSID */:
    case 0x8b1d /* SIOCGIWNICKN */: writes_range(w, at, NAME_MOST); break;
    case 0x8b0d /* SIOCGIWPRIV */:
    case 0x8b0f /* SIOCGIWSTATS */:
    case 0x8b11 /* SIOCGIWSPY */:
    case 0x8b17 /* SIOCGIWAPLIST */:
    case 0x8b19 /* SIOCGIWSCAN */:
    case 0x8b2b /* SIOCGIWENCODE */: w->anywhere(w); break;
    }
}

void writes_ioctl(const uint64_t a[6], struct writes *w) {
    uint32_t nr = (uint32_t)a[1];
    if (nr >= WIRELESS_FIRST && nr <= WIRELESS_LAST) return wireless(nr, a[2], w);
    if (_IOC_TYPE(nr) == 0xfd) return device_mapper(a[2], w);
    switch (nr) {
    case SIOCGIFBR:
    case SIOCSIFBR: bridge(a[2], w); return;
    case SIOCETHTOOL_: ethtool(a[0], a[2], w); return;
    case SIOCGIFCONF: interface_list(a[2], w); return;
    case 0xc020660b /* FS_IOC_FIEMAP */: counted_list(a[2], 32, 24, 4, 56, w); return;
    case FIDEDUPERANGE: counted_list(a[2], 24, 16, 2, 32, w); return;
    case 0x80104592 /* EVIOCGMASK: names more memory */: w->anywhere(w); return;
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].nr == nr) {
            writes_range(w, a[2], known[i].writes);
            return;
        }
    for (size_t i = 0; i < ARRAY_LEN(plain_families); i++)
        if (_IOC_TYPE(nr) == plain_families[i]) {
            if (_IOC_DIR(nr) & _IOC_READ) writes_range(w, a[2], _IOC_SIZE(nr));
            return;
        }
    w->anywhere(w);
}
