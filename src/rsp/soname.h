/* The name that a shared library calls itself: programs ask for it by that name, recordings know where the file was. */
#ifndef REPRISE_RSP_SONAME_H
#define REPRISE_RSP_SONAME_H

#include <stdbool.h>
#include <stddef.h>

/* False: not a 64-bit ELF file. *name is "" if it has no name. The file is not trusted. */
bool elf_soname(int fd, char *name, size_t cap);
/* The dynamic linker that a program asks for, by its path. False: it has none. */
bool elf_interpreter(int fd, char *path, size_t cap);

#endif
