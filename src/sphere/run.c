/* Standard execution: no recorder, no log. */
#include "sphere/listener.h"
#include "sphere/mode.h"
#include "sphere/traced.h"

const struct mode mode_run = {.name = "run",
                              .policy = &policy_none,
                              .kernel_signals = true,
                              .syscall = gate_on_syscall,
                              .before_signal = traced_signal,
                              .ask = listener_ask};
const struct mode *the_mode = &mode_run;
