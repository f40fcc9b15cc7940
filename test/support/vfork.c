// For node, which forks only to run another program: fork(2) as vfork(2). Copying the page tables of a process that holds
// Vitest, for each of some ninety thousand gits, was a quarter of what the suite cost. x86-64, Linux with glibc. Preloaded.
//
// A child of vfork uses its parent's memory until it runs its program, and libuv was written for one that does not. What it
// changes meanwhile is put back: the stack above us, of which it runs in the frames, and `environ`. Other threads go on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;
// libuv's child does not return further than to the function that called fork; a stack has this much above it.
#define FRAMES 2048

static pid_t (*copying)(void);
static __thread struct {
  char frames[FRAMES];
  char **environ;
  long pid;
} kept;

// Nothing that is started from here is preloaded with it; what is not node forks as ever.
__attribute__((constructor)) static void begin(void) {
  unsetenv("LD_PRELOAD");
  if (strcmp(program_invocation_short_name, "node") != 0) copying = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
}

__attribute__((noinline)) pid_t fork(void) {
  if (copying) return copying();
  char *top;
  __asm__ volatile("mov %%rsp, %0" : "=r"(top));
  memcpy(kept.frames, top, FRAMES);
  kept.environ = environ;
  long result = SYS_vfork;
  __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
  if (result == 0) return 0;
  // From here to the end of the copy nothing on the stack is ours: only registers and what was kept.
  kept.pid = result;
  environ = kept.environ;
  char *from = kept.frames, *to;
  long count = FRAMES;
  __asm__ volatile("mov %%rsp, %0\n\trep movsb" : "=&D"(to), "+S"(from), "+c"(count) : : "memory");
  if (kept.pid > 0) return kept.pid;
  errno = -kept.pid;
  return -1;
}
