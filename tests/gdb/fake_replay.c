/* fake_replay [-e] [-g POS] [-s PORT] [-x FILE] [-q] [-n STEPS] [-r DIR] [--] [GDB ARGS]: `reprise replay` on the target of
 * tests/unit/fake_target.h. It has no recording; with -r gdb is told the files of this one. */
#include <limits.h>

#include "../unit/fake_target.h"
#include "cli/cli.h"
#include "cli/debug.h"

static struct fake fake;
static uint64_t steps = 100000;
static char store[PATH_MAX], why[WHY_MAX];

static struct target *open_fake(void *arg) {
    fake_open(&fake, steps);
    fake.program = getenv("FAKE_PROGRAM");
    fake.exe = getenv("FAKE_EXE");
    return steps ? &fake.target : NULL;
}

int main(int argc, char **argv) {
    struct debug_order o = {.debugger = getenv("FAKE_GDB") ? getenv("FAKE_GDB") : "gdb", .open = open_fake};
    for (int c; (c = getopt(argc, argv, "eg:s:x:qn:r:")) != -1;) switch (c) {
        case 'e': o.goal = GOAL_END; break;
        case 'g':
            o.goal = position_parse(optarg, &o.at);
            if (o.goal == GOAL_NONE) return EXIT_OURS;
            break;
        case 's': o.serves = true, o.port = (unsigned)atoi(optarg); break;
        case 'x': o.commands = optarg; break;
        case 'q': o.quiet = true; break;
        case 'r':
            o.recording = recording_open(optarg, why);
            if (!o.recording || !json_member_string(o.recording->header, "store", store, sizeof store))
                return EXIT_OURS;
            o.store = store;
            break;
        case 'n': steps = strtoull(optarg, NULL, 0); break;
        default: return EXIT_OURS;
        }
    o.args = argv + optind;
    return debug(&o);
}
