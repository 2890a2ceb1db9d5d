/* ioctl: what a request writes.
 * A request's own size and direction are trusted only for families whose structures hold no pointers; others may write
 * anywhere. */
#include <asm/ioctls.h>
#include <linux/fs.h>
#include <linux/ioctl.h>
#include <linux/sockios.h>

#include "inproc/types.h"
#include "sphere/sys/model.h"

struct request {
    uint32_t nr;
    uint32_t writes; /* bytes at the argument */
};

#define IFREQ 40
#define NOTHING 0

/* Requests from before sizes were part of the number, and common ones of today. */
static const struct request known[] = {
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
    {0x4b33 /* KDGKBTYPE */, 1},
    {0x4b3b /* KDGETMODE */, 4},
    {0x4b44 /* KDGKBMODE */, 4},
    {0x5600 /* VT_OPENQRY */, 4},
    {0x5601 /* VT_GETMODE */, 8},
    {0x5603 /* VT_GETSTATE */, 6},
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
    {SIOCGARP, 68},
    /* files and block devices */
    {FIBMAP, 4},
    {FIGETBSZ, 4},
    {FICLONE, NOTHING},
    {FICLONERANGE, NOTHING},
    {FS_IOC_GETFLAGS, 8},
    {FS_IOC_SETFLAGS, NOTHING},
    {FS_IOC_GETVERSION, 8},
    {FS_IOC_FSGETXATTR, sizeof(struct fsxattr)},
    {FS_IOC_FSSETXATTR, NOTHING},
    {BLKROGET, 4},
    {BLKGETSIZE, 8},
    {BLKFLSBUF, NOTHING},
    {BLKSSZGET, 4},
    {BLKBSZGET, 8},
    {BLKGETSIZE64, 8},
    /* performance counters */
    {0x2400 /* PERF_EVENT_IOC_ENABLE */, NOTHING},
    {0x2401 /* PERF_EVENT_IOC_DISABLE */, NOTHING},
    {0x2402 /* PERF_EVENT_IOC_REFRESH */, NOTHING},
    {0x2403 /* PERF_EVENT_IOC_RESET */, NOTHING},
    {0x80082407 /* PERF_EVENT_IOC_ID */, 8},
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
    if (!guest_read(&conf, arg, sizeof conf)) return;
    writes_range(w, arg, sizeof conf);
    writes_range(w, conf.list, conf.len);
}

void writes_ioctl(const uint64_t a[6], struct writes *w) {
    uint32_t nr = (uint32_t)a[1];
    if (nr == SIOCGIFCONF) {
        interface_list(a[2], w);
        return;
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
