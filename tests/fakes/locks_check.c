// Ends the process where the interpreter allocates or frees an object while the thread holds a lock
// of the profiler: another thread may wait for that lock with the GIL held, and an allocation may
// collect garbage, and a collection may hand the GIL over (decision 14).
#include <Python.h>
#include <execinfo.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*LocksHeld)(void);

static LocksHeld locks_held;
static unsigned long checks;
static PyMemAllocatorEx originals[2];

static void check(void) {
  ++checks;
  if (locks_held() == 0) {
    return;
  }
  static const char message[] = "Python's memory is used while a lock of the profiler is held\n";
  void *addresses[40];
  if (write(STDERR_FILENO, message, sizeof message - 1) > 0) {
    backtrace_symbols_fd(addresses, backtrace(addresses, 40), STDERR_FILENO);
  }
  abort();
}

static void *on_malloc(void *original, size_t size) {
  check();
  PyMemAllocatorEx *use = original;
  return use->malloc(use->ctx, size);
}

static void *on_calloc(void *original, size_t count, size_t size) {
  check();
  PyMemAllocatorEx *use = original;
  return use->calloc(use->ctx, count, size);
}

static void *on_realloc(void *original, void *block, size_t size) {
  check();
  PyMemAllocatorEx *use = original;
  return use->realloc(use->ctx, block, size);
}

static void on_free(void *original, void *block) {
  check();
  PyMemAllocatorEx *use = original;
  use->free(use->ctx, block);
}

// GIL held.
void locks_check_install(LocksHeld held) {
  const PyMemAllocatorDomain domains[2] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
  locks_held = held;
  for (int i = 0; i < 2; ++i) {
    PyMem_GetAllocator(domains[i], &originals[i]);
    PyMemAllocatorEx watching = {&originals[i], on_malloc, on_calloc, on_realloc, on_free};
    PyMem_SetAllocator(domains[i], &watching);
  }
}

unsigned long locks_check_count(void) { return checks; }
