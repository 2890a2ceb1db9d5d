// cflags: -shared -fPIC -nostdlib
/* Loaded and unloaded by dl_reload, which patches the marked constant in copies of this library. */
static const char mark[8] __attribute__((used)) = "MARKED:)";
int answer(void) {
    int v;
    __asm__("movl $0x11223344, %0" : "=r"(v)); /* the constant that is patched in the file */
    return v;
}
int twice(int (*f)(int), int x) { return f(f(x)); }
