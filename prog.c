#include <stdio.h>
const int answer = 43;
int main(void) { return puts("here") < 0; }
