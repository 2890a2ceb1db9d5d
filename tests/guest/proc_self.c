/* What /proc/self, prctl and auxv say about the program itself. */
#include "guest.h"
#include <elf.h>
#include <libgen.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
extern char **environ;
extern int main(int, char **);

static char text[1 << 16];
static void on(int sig) { (void)sig; }
static void *comm_of_thread(void *arg) {
    prctl(PR_SET_NAME, "worker");
    char path[64], name[32];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", gettid());
    slurp(path, name, sizeof name);
    printf("thread comm: %s", name);
    return arg;
}

int main(int argc, char **argv) {
    char exe[4096] = "", real[4096];
    CHECK(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    CHECK(realpath(argv[0], real) && !strcmp(real, exe));
    printf("exe: %s, through the pid %d\n", basename(exe), ({
               char p[64], e[4096] = "";
               snprintf(p, sizeof p, "/proc/%d/exe", getpid());
               (void)!readlink(p, e, sizeof e - 1);
               !strcmp(e, real);
           }));
    struct stat a, b;
    CHECK(stat("/proc/self/exe", &a) == 0 && stat(real, &b) == 0 && a.st_ino == b.st_ino && a.st_size == b.st_size);
    int fd = open("/proc/self/exe", O_RDONLY);
    char magic[4];
    CHECK(read(fd, magic, 4) == 4 && !memcmp(magic, ELFMAG, 4));
    close(fd);

    signal(SIGUSR1, on), signal(SIGUSR2, SIG_IGN);
    slurp("/proc/self/status", text, sizeof text);
    CHECK(has_text(text, "SigCgt:\t0000000000000200\n") && strtoul(strstr(text, "SigIgn:") + 7, NULL, 16) & 0x800);
    signal(SIGUSR1, SIG_DFL), signal(SIGUSR2, SIG_DFL);

    ssize_t n = slurp("/proc/self/cmdline", text, sizeof text);
    CHECK(n == (ssize_t)strlen(argv[0]) + 1 && !strcmp(text, argv[0]) && argc == 1);
    n = slurp("/proc/self/environ", text, sizeof text);
    CHECK(n > 0 && environ[0] && !strncmp(text, environ[0], strlen(environ[0])));
    slurp("/proc/self/comm", text, sizeof text);
    printf("comm: %s", text);
    char name[17] = "";
    prctl(PR_GET_NAME, name);
    printf("prctl: %s\n", name);
    prctl(PR_SET_NAME, "a name that is too long");
    slurp("/proc/self/comm", text, sizeof text);
    printf("renamed: %s", text);
    pthread_t t;
    pthread_create(&t, NULL, comm_of_thread, NULL), pthread_join(t, NULL);

    slurp("/proc/self/stat", text, sizeof text);
    CHECK(atoi(text) == getpid() && has_text(text, "(a name that is )"));
    slurp("/proc/self/status", text, sizeof text);
    CHECK(has_text(text, "Threads:\t1\n") && has_text(text, "TracerPid:\t0\n"));
    CHECK(has_text(text, "SigBlk:\t0000000000000000\n") && has_text(text, "SigIgn:\t"));

    CHECK(getauxval(AT_PAGESZ) == 4096 && getauxval(AT_CLKTCK) == 100 && getauxval(AT_UID) == getuid());
    CHECK(getauxval(AT_SECURE) == 0 && getauxval(AT_PHENT) == sizeof(Elf64_Phdr) && getauxval(AT_HWCAP) != 0);
    CHECK(!strcmp((char *)getauxval(AT_PLATFORM), "x86_64"));
    CHECK(!strcmp((char *)getauxval(AT_EXECFN), argv[0]));
    CHECK(getauxval(AT_RANDOM) && getauxval(AT_SYSINFO_EHDR) && getauxval(AT_BASE));
    CHECK(!memcmp((char *)getauxval(AT_SYSINFO_EHDR), ELFMAG, 4) && !memcmp((char *)getauxval(AT_BASE), ELFMAG, 4));
    Elf64_Phdr *ph = (Elf64_Phdr *)getauxval(AT_PHDR);
    bool found = false;
    for (unsigned i = 0; i < getauxval(AT_PHNUM); i++)
        if (ph[i].p_type == PT_PHDR)
            found = (uintptr_t)ph - ph[i].p_vaddr + ((Elf64_Ehdr *)((uintptr_t)ph - ph[i].p_vaddr))->e_entry ==
                    getauxval(AT_ENTRY);
    CHECK(found);
    n = slurp("/proc/self/auxv", text, sizeof text);
    CHECK(n > 0 && n % 16 == 0);
    Elf64_auxv_t *av = (Elf64_auxv_t *)text;
    for (; av->a_type != AT_NULL; av++)
        if (av->a_type != AT_HWCAP) CHECK(getauxval(av->a_type) == av->a_un.a_val); /* libc replaces that one */
    char cwd[4096], link[4096] = "";
    CHECK(getcwd(cwd, sizeof cwd) && readlink("/proc/self/cwd", link, sizeof link - 1) > 0 && !strcmp(cwd, link));
    return finish();
}
