/* Calls whose stack page is written often before: direct ones and through a pointer. */
static volatile int results[3];

__attribute__((noinline)) static int leaf(int n) { return n + 1; }

static int (*volatile pointer)(int) = leaf;

#define TEN(a, n)                                                                                                \
    (a[n] = n, a[n + 1] = n, a[n + 2] = n, a[n + 3] = n, a[n + 4] = n, a[n + 5] = n, a[n + 6] = n, a[n + 7] = n, \
     a[n + 8] = n, a[n + 9] = n)

__attribute__((noinline)) static int direct(void) {
    volatile int a[50];
    TEN(a, 0), TEN(a, 10), TEN(a, 20), TEN(a, 30), TEN(a, 40);
    return leaf(a[3]) + 1;
}

__attribute__((noinline)) static int indirect(void) {
    volatile int a[50];
    TEN(a, 0), TEN(a, 10), TEN(a, 20), TEN(a, 30), TEN(a, 40);
    return pointer(a[4]) + 1;
}

int main(void) {
    for (int i = 0; i < 3; i++) results[i] = i % 2 ? indirect() : direct();
    return results[0] == results[2] ? 0 : 1;
}
