/* Samples of performance events come in a ring in memory, which the kernel fills: there are some, or the ring is refused. */
#include "guest.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>

#define PAGES 8

int main(void) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .sample_period = 1000000,
                                   .sample_type = PERF_SAMPLE_TID,
                                   .exclude_kernel = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) return 77; /* forbidden, or not there */
    struct perf_event_mmap_page *ring = mmap(NULL, (1 + PAGES) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED) {
        CHECK(errno == ENODEV);
        puts("no ring");
        return finish();
    }
    for (long until = now_ms() + 5000; now_ms() < until && !*(volatile __u64 *)&ring->data_head;) {}
    printf("samples: %d\n", ring->data_head > 0);
    return finish();
}
