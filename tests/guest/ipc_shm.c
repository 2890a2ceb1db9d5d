// libs: -lrt
/* Memory between processes: SysV segments, POSIX shm, semaphores, message queues; attach at a fixed address. */
#include "guest.h"
#include <mqueue.h>
#include <semaphore.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

int main(void) {
    int id = shmget(IPC_PRIVATE, 100000, IPC_CREAT | 0600);
    int *m = shmat(id, NULL, 0);
    CHECK(m != (void *)-1 && m[24999] == 0);
    int *again = shmat(id, (void *)0x345600000000, 0);
    CHECK(again == (int *)0x345600000000);
    again[5] = 55;
    CHECK(m[5] == 55);
    int *ro = shmat(id, NULL, SHM_RDONLY);
    CHECK(ro != (void *)-1 && ro[5] == 55);
    pid_t pid = fork();
    if (!pid) {
        for (int i = 0; i < 1000; i++) __atomic_add_fetch(&m[0], 1, __ATOMIC_SEQ_CST);
        _exit(m[5]);
    }
    for (int i = 0; i < 1000; i++) __atomic_add_fetch(&again[0], 1, __ATOMIC_SEQ_CST);
    printf("child %s, ", wait_text(pid)), printf("count %d\n", m[0]);
    struct shmid_ds ds;
    CHECK(shmctl(id, IPC_STAT, &ds) == 0 && ds.shm_nattch == 3 && ds.shm_segsz == 100000);
    CHECK(shmdt(again) == 0 && shmctl(id, IPC_RMID, NULL) == 0 && shmdt(m) == 0 && shmdt(ro) == 0 && shmdt(ro) == -1);

    char name[64];
    snprintf(name, sizeof name, "/reprise-test-%d", getpid());
    int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    sem_t *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    volatile int *value = (int *)(s + 4);
    sem_init(s, 1, 0), sem_init(s + 1, 1, 0);
    pid = fork();
    if (!pid) {
        for (int i = 0; i < 500; i++) sem_wait(s), *value = *value * 3 + i, sem_post(s + 1);
        _exit(0);
    }
    for (int i = 0; i < 500; i++) *value = *value + 1, sem_post(s), sem_wait(s + 1);
    printf("semaphores %x, %s\n", *value, wait_text(pid));
    CHECK(shm_unlink(name) == 0);

    int sem = semget(IPC_PRIVATE, 2, 0600);
    struct sembuf up = {0, 1, 0}, down = {0, -1, 0}, nowait = {0, -1, IPC_NOWAIT}, timed = {0, -1, 0};
    CHECK(semop(sem, &nowait, 1) == -1 && errno == EAGAIN);
    struct timespec t = {0, 20000000};
    CHECK(semtimedop(sem, &timed, 1, &t) == -1 && errno == EAGAIN);
    pid = fork();
    if (!pid) _exit(semop(sem, &down, 1) == 0 ? 7 : 8);
    semop(sem, &up, 1);
    printf("semop %s\n", wait_text(pid));
    semctl(sem, 0, IPC_RMID);

    int q = msgget(IPC_PRIVATE, 0600);
    struct {
        long type;
        char text[32];
    } msg = {3, "three"}, got;
    CHECK(msgsnd(q, &msg, 6, 0) == 0);
    msg.type = 2, strcpy(msg.text, "two");
    CHECK(msgsnd(q, &msg, 4, 0) == 0);
    CHECK(msgrcv(q, &got, 32, 2, 0) == 4 && msgrcv(q, &msg, 32, 0, 0) == 6);
    printf("messages %s %s\n", got.text, msg.text);
    msgctl(q, IPC_RMID, NULL);
    struct mq_attr at = {.mq_maxmsg = 4, .mq_msgsize = 16};
    mqd_t mq = mq_open(name, O_CREAT | O_RDWR, 0600, &at);
    if (mq != (mqd_t)-1) {
        char b[16];
        unsigned prio;
        CHECK(mq_send(mq, "low", 4, 1) == 0 && mq_send(mq, "high", 5, 9) == 0);
        CHECK(mq_receive(mq, b, 16, &prio) == 5 && prio == 9);
        mq_unlink(name);
    }
    return finish();
}
