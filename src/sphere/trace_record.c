#include "sphere/trace_record.h"

#include "inproc/str.h"
#include "recorder/order.h"
#include "sphere/channel.h"
#include "sphere/checkpoint.h"
#include "sphere/event_log.h"
#include "sphere/gate.h"
#include "sphere/sigframe.h"
#include "sphere/trace_regs.h"

void trace_record_turn(struct thread *t, bool take) {
    if (take)
        order_leave_call(t);
    else
        checkpoint_park(t, true), order_enter_call(t, true);
    t->turn_lent = !take;
}

void trace_record_stop(struct thread *t, uint8_t flags) {
    if (!(flags & (EVF_AFTER | EVF_AT_GATE))) checkpoint_op(t); /* there it is the call's */
    if (flags & EVF_RETRY) t->debugged.in_call = false;
    event_new(t, EV_STOP, 0, 0)->flags = flags;
    stream_commit();
    if (flags & EVF_FAULT) t->stopped_inside = true;
    t->awaits = AWAITS_TRACER;
    trace_record_turn(t, false);
}

void trace_record_wrote(struct thread *t, gaddr addr, size_t len, uint8_t flags) {
    struct event *e = event_new(t, EV_POKE, 0, sizeof(struct ev_memory) + len);
    struct ev_memory *m = (struct ev_memory *)(e + 1);
    e->flags = flags;
    memset((uint8_t *)e + e->size - 8, 0, 8);
    *m = (struct ev_memory){.addr = addr, .len = (uint32_t)len};
    guest_read(m + 1, addr, len);
    stream_commit();
}

static void log_regs(struct thread *t) {
    size_t extended = t->tracee->extended_changed ? sigframe_extended_size() : 0;
    struct event *e = event_new(t, EV_REGS, 0, sizeof(struct ev_regs) + extended);
    struct ev_regs *v = (struct ev_regs *)(e + 1);
    *v = trace_regs_event(t, extended);
    memcpy(v + 1, t->tracee->extended, extended);
}

void trace_record_go(struct thread *t, bool changed, uint8_t flags, uint16_t signal) {
    if (changed) log_regs(t);
    event_new(t, EV_TURN, signal, 0)->flags = flags;
    stream_commit();
    t->stopped_inside = false;
    t->awaits = AWAITS_CALL;
}
