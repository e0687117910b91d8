/* Included into every C file of a release. Functions that newer versions of glibc have moved or renewed are bound to their
 * oldest version, so that the program starts on systems with a glibc that is older than the builder's. What is bound here
 * has not changed for its callers. scripts/release.sh checks the result. */
#ifndef __ASSEMBLER__
#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#endif
#define FROM_OLDEST(f) __asm__(".symver " #f ", " #f "@" OLDEST);
FROM_OLDEST(dlclose)
FROM_OLDEST(dlerror)
FROM_OLDEST(dlopen)
FROM_OLDEST(dlsym)
FROM_OLDEST(pthread_attr_getstack)
FROM_OLDEST(pthread_attr_getstacksize)
FROM_OLDEST(pthread_create)
FROM_OLDEST(pthread_getattr_np)
FROM_OLDEST(pthread_key_create)
FROM_OLDEST(pthread_setspecific)
FROM_OLDEST(pthread_sigmask)
#endif
