/* Linked into the programs of a release: the first function of a program calls __libc_start_main, whose version of glibc
 * 2.34 older systems do not have. The older version is handed what runs before main; the newer one finds it itself. */
#include "glibc.h"

typedef void step(int, char **, char **);
#define HIDDEN __attribute__((visibility("hidden")))
extern step *__init_array_start[] HIDDEN;
extern step *__init_array_end[] HIDDEN;

int start_main(int (*)(int, char **, char **), int, char **, step *, void (*)(void), void (*)(void), void *);
__asm__(".symver start_main, __libc_start_main@" OLDEST);

static void begin(int argc, char **argv, char **env) {
  for (step **s = __init_array_start; s < __init_array_end; s++) (*s)(argc, argv, env);
}

HIDDEN int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv, step *unused,
                             void (*end)(void), void (*loader)(void), void *stack) {
  return start_main(program, argc, argv, begin, end, loader, stack);
}
