/* reprise unpack: makes a recording of a packed file, which may come from anybody. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/store.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/print.h"
#include "controller/store.h"
#include "controller/where.h"
#include "log/pack.h"

static const char unpack_usage[] =
    "usage: reprise unpack FILE [-o DIR]\n"
    "\n"
    "Makes a recording of a file that `reprise pack` wrote (-: standard input) and prints its name. The files it\n"
    "needs go to the store in $REPRISE_DIR (else ~/.local/share/reprise). Every checksum is verified; a file that\n"
    "is damaged leaves nothing behind.\n"
    "\n"
    "  -o DIR         the directory to make; default: the name it had, in $REPRISE_DIR\n"
    "  --limit SIZE   refuse what would take more (default 64G)\n"
    "  --json         says what was made\n"
    "  --help         this text\n";

#define LIMIT (64ull << 30)

struct target {
    char base[PATH_MAX];
    struct store store;
    char dir[PATH_MAX];
    char temp[64]; /* object under way, below the store */
};

static int begin_object(void *arg, struct object_name name, uint64_t size, char *why) {
    struct target *t = arg;
    if (store_has(&t->store, name, size)) return -2;
    snprintf(t->temp, sizeof t->temp, ".new-%d-unpack", (int)getpid());
    int fd = openat(t->store.dir, t->temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) snprintf(why, WHY_MAX, "cannot write to the store %s/store: %s", t->base, strerror(errno));
    return fd < 0 ? -1 : fd;
}

static bool finish_object(void *arg, struct object_name name, int fd, bool ok, char *why) {
    struct target *t = arg;
    char file[OBJECT_FILE], folder[3] = {0};
    object_file(name, file);
    memcpy(folder, file, 2);
    ok = close(fd) == 0 && ok;
    ok = ok && (mkdirat(t->store.dir, folder, 0700) == 0 || errno == EEXIST) &&
         renameat(t->store.dir, t->temp, t->store.dir, file) == 0;
    if (ok) return true;
    snprintf(why, WHY_MAX, "cannot write to the store %s/store: %s", t->base, strerror(errno));
    unlinkat(t->store.dir, t->temp, 0);
    return false;
}

static int begin_file(void *arg, const char *name, char *why) {
    const struct target *t = arg;
    char path[PATH_MAX + PACK_NAME];
    if (!ckpt_is_file_name(name)) {
        snprintf(why, WHY_MAX, "the packed file has a file '%s', which no recording has", name);
        return -1;
    }
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) snprintf(why, WHY_MAX, "cannot make %s: %s", path, strerror(errno));
    return fd;
}

/* BASE/NAME, or BASE/NAME-N where that is taken. */
static bool make_named(struct target *t, const char *name) {
    if (!*name) name = "unpacked";
    for (int n = 0; n < 1000000; n++) {
        int len = n ? snprintf(t->dir, sizeof t->dir, "%s/%s-%d", t->base, name, n)
                    : snprintf(t->dir, sizeof t->dir, "%s/%s", t->base, name);
        if (len < 0 || (size_t)len >= sizeof t->dir) break;
        if (mkdir(t->dir, 0700) == 0) return true;
        if (errno != EEXIST) break;
    }
    complain("cannot make %s: %s", t->dir, strerror(errno));
    return false;
}

static bool make_dir(struct target *t, const char *wanted, const char *name) {
    if (!wanted) return make_named(t, name);
    if (strlen(wanted) < sizeof t->dir && mkdir(wanted, 0700) == 0) {
        strcpy(t->dir, wanted);
        return true;
    }
    complain("cannot make %s: %s", wanted, strerror(errno));
    return false;
}

/* Everything but the directory, which the caller removes if this fails. */
static bool fill(struct target *t, int from, const struct pack_facts *facts, uint64_t limit) {
    char path[PATH_MAX + 8], why[WHY_MAX];
    snprintf(path, sizeof path, "%s/log", t->dir);
    int log = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (log < 0) {
        complain("cannot make %s: %s", path, strerror(errno));
        return false;
    }
    flock(log, LOCK_EX | LOCK_NB);
    struct unpacker u = {.log = log,
                         .begin_object = begin_object,
                         .finish_object = finish_object,
                         .begin_file = begin_file,
                         .arg = t,
                         .limit = limit};
    bool fine = pack_read(from, facts, &u, why);
    if (close(log) < 0 && fine) {
        snprintf(why, sizeof why, "cannot write %s: %s", path, strerror(errno));
        fine = false;
    }
    if (fine) return true;
    unlink(path);
    ckpt_remove_files(t->dir);
    complain("%s", why);
    return false;
}

static int unpack(int from, const char *wanted, uint64_t limit, bool json) {
    struct target t = {.store = {.dir = -1}};
    struct pack_facts facts;
    char why[WHY_MAX], path[PATH_MAX + 8];
    if (!pack_read_header(from, &facts, why) || !place_base(t.base, sizeof t.base, why)) {
        complain("%s", why);
        return EXIT_OURS;
    }
    snprintf(path, sizeof path, "%s/store", t.base);
    if (!store_open(&t.store, path)) return EXIT_OURS;
    int lock = place_lock(t.base, false, true, why);
    if (lock < 0) {
        complain("%s", why);
        return EXIT_OURS;
    }
    if (!make_dir(&t, wanted, facts.name)) return EXIT_OURS;
    if (!fill(&t, from, &facts, limit)) {
        rmdir(t.dir);
        return EXIT_OURS;
    }
    char whole[PATH_MAX];
    where_set_latest(realpath(t.dir, whole) ? whole : t.dir);
    close(lock);
    if (json) {
        fputs("{\"recording\": ", stdout);
        json_write_string(stdout, t.dir, strlen(t.dir));
        printf(", \"log_size\": %lu, \"objects\": %lu, \"objects_size\": %lu}\n", facts.log_size, facts.objects,
               facts.objects_size);
    } else {
        print_text(stdout, t.dir, strlen(t.dir));
        putchar('\n');
    }
    return printed();
}

static int unpack_main(int argc, char **argv) {
    static const struct option options[] = {
        {"output", 1, NULL, 'o'}, {"limit", 1, NULL, 'l'}, {"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'}, {0}};
    const char *wanted = NULL;
    uint64_t limit = LIMIT;
    bool json = false;
    for (int c; (c = verb_option(&verb_unpack, argc, argv, ":ho:", options)) != -1;) {
        if (c == VERB_DONE || c == VERB_WRONG) return c == VERB_DONE ? 0 : EXIT_OURS;
        if (c == 'l' && !parse_size(optarg, &limit)) return usage_error(&verb_unpack, "'%s' is no size", optarg);
        if (c == 'o') wanted = optarg;
        if (c == 'j') json = true;
    }
    if (argc - optind != 1) return usage_error(&verb_unpack, "which file? One at a time");
    const char *file = argv[optind];
    int fd = strcmp(file, "-") == 0 ? 0 : open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        complain("cannot open %s: %s", file, strerror(errno));
        return EXIT_OURS;
    }
    return unpack(fd, wanted, limit, json);
}

const struct verb verb_unpack = {"unpack", "make a recording of a packed file", unpack_usage, unpack_main};
