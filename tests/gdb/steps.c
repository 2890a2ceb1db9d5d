/* One thread: calls, loops, recursion, a structure, memory that is written in many ways. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
    int key;
    char name[12];
    struct item *next;
};

volatile int counter;
int table[8];
char text[64];
struct item *first;

static int add(int a, int b) {
    int sum = a + b;
    counter += sum;
    return sum;
}

static int depth(int n) {
    if (n == 0) return 0;
    return 1 + depth(n - 1);
}

static void insert(int key) {
    struct item *it = calloc(1, sizeof *it);
    it->key = key;
    snprintf(it->name, sizeof it->name, "item %d", key);
    it->next = first;
    first = it;
}

int total(void) {
    int sum = 0;
    for (struct item *it = first; it; it = it->next) sum += it->key;
    return sum;
}

static void fill(void) {
    for (int i = 0; i < 8; i++) table[i] = i * i;
    memset(text, 'x', 40);
    memcpy(text + 8, "copied", 6);
}

int main(void) {
    int a = add(1, 2);
    int b = add(a, 3);
    int c = depth(5);
    fill();
    for (int i = 0; i < 5; i++) insert(i * 10);
    counter = 1000;
    printf("%d %d %d %d %.14s\n", a, b, c, total(), text);
    fflush(stdout);
    counter = counter + table[3];
    return 3;
}
