/* What gdb is told when it starts. Plain commands, no Python: not every gdb has it. */
#include "cli/gdb_script.h"

static const char before[] = "set $reprise_confirm = $_gdb_setting(\"confirm\")\n"
                             "set confirm off\n"
                             "set remotetimeout 1000000\n" /* a place far away takes its time */
                             "set non-stop off\n"
                             "set schedule-multiple off\n"
                             "set breakpoint always-inserted on\n" /* any number of them: not sent anew at every stop */
                             "set prompt (reprise) \n";

static const char commands[] =
    "define when\n"
    "  monitor when\n"
    "end\n"
    "document when\n"
    "The position: EVENT:TICKS:STEPS of the process. `seek` leads back to it.\n"
    "end\n"
    "\n"
    "define seek\n"
    "  if $argc != 1\n"
    "    echo seek POS: a position as `when` prints it, or begin, or end\\n\n"
    "  else\n"
    "    monitor seek $arg0\n"
    "    stepi\n"
    "  end\n"
    "end\n"
    "document seek\n"
    "Go to a position of the recording, forwards or backwards.\n"
    "Usage: seek EVENT[:TICKS[:STEPS]] | begin | end\n"
    "end\n"
    "\n"
    "define checkpoint\n"
    "  monitor checkpoint\n"
    "end\n"
    "document checkpoint\n"
    "Give the position a number, for `restart N`.\n"
    "end\n"
    "\n"
    "define restart\n"
    "  if $argc == 0\n"
    "    monitor restart\n"
    "  else\n"
    "    monitor restart $arg0\n"
    "  end\n"
    "  stepi\n"
    "end\n"
    "document restart\n"
    "Go to checkpoint N, or to the begin of the recording.\n"
    "Usage: restart [N]\n"
    "end\n"
    "\n"
    "define info checkpoints\n"
    "  monitor info checkpoints\n"
    "end\n"
    "document info checkpoints\n"
    "The checkpoints and their positions.\n"
    "end\n"
    "\n"
    "define delete checkpoint\n"
    "  if $argc != 1\n"
    "    echo delete checkpoint N: a number that `info checkpoints` lists\\n\n"
    "  else\n"
    "    monitor delete checkpoint $arg0\n"
    "  end\n"
    "end\n"
    "document delete checkpoint\n"
    "Forget checkpoint N.\n"
    "end\n"
    "\n"
    "define info recording\n"
    "  monitor info recording\n"
    "end\n"
    "document info recording\n"
    "What is recorded: command, time, processes, where one is in it.\n"
    "end\n"
    "\n"
    "define elapsed\n"
    "  monitor elapsed\n"
    "end\n"
    "document elapsed\n"
    "The time that had passed when the program was here.\n"
    "end\n"
    "\n"
    "define catch hookpost-fork\n"
    "  monitor forks on\n"
    "end\n"
    "\n"
    "define set hookpost-follow-fork-mode\n"
    "  monitor forks on\n"
    "end\n"
    "\n"
    "define catch vfork\n"
    "  catch fork\n"
    "end\n"
    "document catch vfork\n"
    "Stop where the program makes a process, in whichever way: the same as `catch fork`.\n"
    "end\n"
    "\n"
    "define why\n"
    "  if $argc == 1\n"
    "    eval \"monitor why %#lx %lu\", (unsigned long) &($arg0), (unsigned long) sizeof($arg0)\n"
    "  else\n"
    "    if $argc == 3\n"
    "      eval \"monitor why %#lx %lu -n %d\", (unsigned long) &($arg2), (unsigned long) sizeof($arg2), $arg1\n"
    "    else\n"
    "      echo why [-n N] EXPR: where the value of EXPR came from; EXPR without spaces\\n\n"
    "    end\n"
    "  end\n"
    "end\n"
    "document why\n"
    "Where the value of an expression came from: the last write to it, and what that write read.\n"
    "Usage: why [-n N] EXPR\n"
    "end\n";

static const char after[] = "if $reprise_confirm\n"
                            "  set confirm on\n"
                            "end\n";

void gdb_script_write(const struct gdb_script *s, FILE *f) {
    fputs(before, f);
    fputs(commands, f);
    if (s->sysroot)
        fprintf(f, "set sysroot %s\n", s->sysroot);
    else
        fputs("set sysroot target:\n", f);
    if (s->program) fprintf(f, "file %s\n", s->program);
    fprintf(f, "target extended-remote %s\n", s->address);
    /* The order of threads is recorded: this says which thread a step, also a backward one, is meant for. */
    fputs("set scheduler-locking step\n", f);
    fputs(after, f);
    if (!s->quiet)
        fputs("echo Reprise: reverse-continue, reverse-step ... and when, seek, checkpoint, restart, info recording, "
              "why.\\n\n"
              "monitor status\n",
              f);
}
