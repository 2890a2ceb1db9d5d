/* reprise pack: a recording and the files it needs as one file. */
#include "log/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/store.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/print.h"

static const char pack_usage[] =
    "usage: reprise pack [DIR|NAME] -o FILE\n"
    "\n"
    "Writes a recording (default: the latest), its checkpoints and the contents of all files it needs into one file,\n"
    "which `reprise unpack` turns into a recording again, on any machine.\n"
    "\n"
    "  --no-checkpoints   a smaller file; reaching places in the middle or at the end will take longer\n"
    "  -o FILE   the file to write; one that exists is replaced when all is written. -: standard output\n"
    "  --json    says what was written\n"
    "  --help    this text\n"
    "\n"
    "A recording holds what its program read and wrote, and may hold secrets: the file is for you alone (0600).\n";

/* Where objects of this recording may be: BASE's store, the one beside it, the one that the header names. */
struct stores {
    char place[3][PATH_MAX + 16];
};

static bool find_in_stores(void *arg, struct object_name name, char *path, size_t cap) {
    const struct stores *s = arg;
    char file[OBJECT_FILE];
    struct stat st;
    object_file(name, file);
    for (int i = 2; i >= 0; i--) { /* the one that the user knows is named if none has it */
        int n = s->place[i][0] ? snprintf(path, cap, "%s/%s", s->place[i], file) : -1;
        if (n > 0 && (size_t)n < cap && lstat(path, &st) == 0 && S_ISREG(st.st_mode)) return true;
    }
    return false;
}

/* The name that unpacking suggests: that of the directory. */
static const char *name_of(const struct recording *r, char path[PATH_MAX]) {
    if (!r->dir || !realpath(r->dir, path)) return "";
    struct stat st;
    char *slash = strrchr(path, '/');
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) *slash = '\0'; /* the log itself */
    slash = strrchr(path, '/');
    return slash ? slash + 1 : "";
}

static bool without_checkpoints;

/* None of a recording that is under way: they come and go. */
static void find_files(const struct recording *r, struct pack_files *files) {
    char ignored[WHY_MAX];
    *files = (struct pack_files){NULL, 0};
    if (without_checkpoints || r->under_way || !ckpt_files(r->dir, &files->names, &files->n, ignored)) return;
    size_t kept = 0;
    for (size_t i = 0; i < files->n; i++) {
        if (ckpt_is_file_name(files->names[i]))
            files->names[kept++] = files->names[i];
        else
            free(files->names[i]);
    }
    files->n = kept;
}

static bool write_pack(const struct recording *r, int fd, char *why) {
    struct stores s = {.place = {""}};
    struct pack_files files;
    char path[PATH_MAX], ignored[WHY_MAX];
    if (place_base(path, sizeof path, ignored)) snprintf(s.place[0], sizeof s.place[0], "%s/store", path);
    snprintf(s.place[1], sizeof s.place[1], "%s/../store", r->dir);
    json_member_string(r->header, "store", s.place[2], sizeof s.place[2]);
    find_files(r, &files);
    bool fine = pack_write(r, name_of(r, path), &files, find_in_stores, &s, fd, why);
    ckpt_files_free(files.names, files.n);
    return fine;
}

/* Under another name first: what was there stays until the new file is whole. */
static int pack_to_file(const struct recording *r, const char *file, uint64_t *size) {
    char temp[PATH_MAX + 32], why[WHY_MAX];
    struct stat st;
    if ((size_t)snprintf(temp, sizeof temp, "%s.part-%d", file, (int)getpid()) >= PATH_MAX) {
        complain("%s: the name is too long", file);
        return EXIT_OURS;
    }
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        complain("cannot make %s: %s", temp, strerror(errno));
        return EXIT_OURS;
    }
    bool fine = write_pack(r, fd, why);
    if (fine && fstat(fd, &st) == 0) *size = (uint64_t)st.st_size;
    if ((close(fd) < 0 || (fine && rename(temp, file) < 0)) && fine) {
        snprintf(why, sizeof why, "cannot write %s: %s", file, strerror(errno));
        fine = false;
    }
    if (fine) return 0;
    unlink(temp);
    complain("%s", why);
    return EXIT_OURS;
}

static int pack_to_stdout(const struct recording *r) {
    char why[WHY_MAX];
    if (isatty(1)) {
        complain("a packed recording is nothing for a terminal: -o FILE, or a pipe behind it");
        return EXIT_OURS;
    }
    if (write_pack(r, 1, why)) return 0;
    complain("%s", why);
    return EXIT_OURS;
}

static int pack_main(int argc, char **argv) {
    static const struct option options[] = {{"output", 1, NULL, 'o'},
                                            {"no-checkpoints", 0, NULL, 'n'},
                                            {"json", 0, NULL, 'j'},
                                            {"help", 0, NULL, 'h'},
                                            {0}};
    const char *file = NULL;
    bool json = false;
    for (int c; (c = verb_option(&verb_pack, argc, argv, ":ho:", options)) != -1;) {
        if (c == VERB_DONE || c == VERB_WRONG) return c == VERB_DONE ? 0 : EXIT_OURS;
        if (c == 'o') file = optarg;
        if (c == 'n') without_checkpoints = true;
        if (c == 'j') json = true;
    }
    if (argc - optind > 1) return usage_error(&verb_pack, "one recording at a time");
    if (!file || !*file) return usage_error(&verb_pack, "where to? -o FILE is missing");

    struct recording *r = open_recording(argv[optind]);
    if (!r) return EXIT_OURS;
    uint64_t size = 0;
    bool to_stdout = strcmp(file, "-") == 0;
    recording_verify(r);
    say_if_cut(r);
    int status = to_stdout ? pack_to_stdout(r) : pack_to_file(r, file, &size);
    if (status == 0 && json && !to_stdout) {
        fputs("{\"file\": ", stdout);
        json_write_string(stdout, file, strlen(file));
        printf(", \"size\": %lu, \"log_size\": %lu}\n", size, r->cut);
        status = printed();
    }
    recording_close(r);
    return status;
}

const struct verb verb_pack = {"pack", "write a recording and all it needs into one file", pack_usage, pack_main};
