/* Performance events of the software kind: counters are inputs like any other. */
#include "guest.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>

static int open_event(uint64_t config) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = config, .disabled = 1};
    return syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int main(void) {
    int fd = open_event(PERF_COUNT_SW_TASK_CLOCK);
    if (fd < 0) return 77; /* forbidden, or not there */
    uint64_t before = 0, after = 0, id = 0;
    CHECK(ioctl(fd, PERF_EVENT_IOC_RESET, 0) == 0);
    CHECK(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
    CHECK(read(fd, &before, 8) == 8);
    for (volatile int i = 0; i < 1000000; i++) {}
    CHECK(read(fd, &after, 8) == 8);
    CHECK(after > before);
    CHECK(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
    CHECK(ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0 && id != 0);
    struct perf_event_attr bad = {.type = PERF_TYPE_SOFTWARE, .size = 7};
    CHECK(syscall(SYS_perf_event_open, &bad, 0, -1, -1, 0) == -1 && errno == E2BIG);
    CHECK(bad.size >= sizeof(struct perf_event_attr) || bad.size > 7); /* the size that it would take */
    CHECK(close(fd) == 0 && read(fd, &after, 8) == -1);
    return finish();
}
