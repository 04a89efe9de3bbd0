#include "torch/import_slot.h"

#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/check.h"

using deepcontext::torch::ImportSlot;

namespace {

bool g_is_refused = false;

constexpr char kReport[] = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";

void other() {}

} // namespace

/// In the place of the C library's: a process that has as many mappings as it may.
extern "C" int mprotect(void *address, size_t bytes, int protection) noexcept {
  if (g_is_refused) {
    errno = ENOMEM;
    return -1;
  }
  return static_cast<int>(syscall(SYS_mprotect, address, bytes, protection));
}

TEST(a_slot_that_the_linker_has_closed_is_opened_for_the_moment) {
  CHECK(dlopen(FAKES "/libc10_cuda.so", RTLD_NOW) != nullptr);
  ImportSlot slot;
  std::string reason;
  CHECK(slot.find("libc10_cuda.so", kReport, &reason));
  void *before = slot.target();
  slot.set(reinterpret_cast<void *>(other));
  CHECK(slot.target() == reinterpret_cast<void *>(other));
  slot.set(before);
  CHECK(slot.target() == before);
}

TEST(a_slot_that_may_not_be_opened_stays_as_it_is) {
  CHECK(dlopen(FAKES "/libc10_cuda.so", RTLD_NOW) != nullptr);
  ImportSlot slot;
  std::string reason;
  CHECK(slot.find("libc10_cuda.so", kReport, &reason));
  void *before = slot.target();
  g_is_refused = true;
  slot.set(reinterpret_cast<void *>(other)); // writing would be a fault
  g_is_refused = false;
  CHECK(slot.target() == before);
}
