/* Landlock: rules that a program gives itself hold for the runtime, too, which has to execute itself again. */
#include <linux/landlock.h>

#include "inproc/sys.h"
#include "sphere/sys/special.h"

/* The ruleset gets a rule for the runtime's file, with what it rules over of what execve needs. What may be executed besides is
 * asked of the kernel for each file (loader_check). */
long sys_landlock_restrict_self(struct tblock *t, uint64_t a[6]) {
    static const uint64_t needs[] = {LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE,
                                     LANDLOCK_ACCESS_FS_EXECUTE, LANDLOCK_ACCESS_FS_READ_FILE};
    for (size_t i = 0; i < ARRAY_LEN(needs); i++) {
        struct landlock_path_beneath_attr rule = {.allowed_access = needs[i], .parent_fd = fd_own()};
        if (SYS(landlock_add_rule, a[0], LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0) break;
    }
    return gate_syscall(__NR_landlock_restrict_self, a);
}
