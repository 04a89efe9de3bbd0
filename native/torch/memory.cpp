#include "torch/memory.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>

#include "abi/torch.h"
#include "core/allocation_ledger.h"
#include "core/guard.h"
#include "core/text.h"
#include "python/frame_walk.h"
#include "torch/import_slot.h"

namespace deepcontext::torch {

namespace {

constexpr char kHostLibrary[] = "libc10.so";
constexpr char kReport[] = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";

/// A slot and its original content. When another tool has replaced the hook in turn, the slot is
/// left to that tool, which calls the hook.
struct Hook {
  ImportSlot slot;
  void *replacement = nullptr;
  void *original = nullptr;
  bool is_buried = false;

  void put() {
    if (!is_buried) {
      slot.set(replacement);
    }
  }
  void remove() {
    if (!slot || !replacement) {
      return;
    }
    is_buried = is_buried || !isInPlace();
    if (!is_buried) {
      slot.set(original);
    }
  }
  bool isInPlace() const { return slot && replacement && slot.target() == replacement; }
};

using Memalign = int (*)(void **, size_t, size_t);
using Free = void (*)(void *);
using Report = void (*)(void *, int64_t, size_t, size_t, abi::Device);

Hook g_memalign;
Hook g_free;
std::atomic<Memalign> g_true_memalign{nullptr};
std::atomic<Free> g_true_free{nullptr};
bool g_is_host_watched = false;

/// The function that a hook replaced. The calling library read the slot with a plain load, after
/// which a processor may already have read what is known of the slot; hence the fence.
template <typename Function> Function trueFunction(const std::atomic<Function> &known) {
  std::atomic_thread_fence(std::memory_order_acquire);
  return known.load(std::memory_order_relaxed);
}

/// The stage of a context, derived from the nodes above it.
Stage stageOf(const Node *node, bool is_device) {
  bool is_forward = false;
  bool is_copy = false;
  bool is_in_module = false;
  for (; node; node = node->parent) {
    if (node->hasFlag(kFlagOptimizer)) {
      // a module in it is the forward of a closure given to step()
      return is_in_module ? Stage::kForward : Stage::kOptimizer;
    }
    if (node->hasFlag(kFlagLoading)) {
      return Stage::kLoading;
    }
    if (node->hasFlag(kFlagBackward)) {
      return Stage::kBackward;
    }
    is_in_module |= node->kind == FrameKind::kModule;
    is_forward |= node->kind == FrameKind::kOperator && node->hasFlag(kFlagSequenced);
    if (is_device && node->kind == FrameKind::kOperator) {
      std::string_view name = Interner::instance().text(static_cast<uint32_t>(node->a));
      is_copy |= startsWith(name, "aten::to") || startsWith(name, "aten::_to_copy");
    }
  }
  if (is_copy && !is_in_module) {
    return Stage::kLoading;
  }
  return is_forward || is_in_module ? Stage::kForward : Stage::kOther;
}

/// Record an allocation under the calling thread's current context.
void noteAllocation(void *address, uint64_t bytes, uint16_t pool_key, const char *kind) {
  AllocationLedger &ledger = AllocationLedger::instance();
  bool is_noted = guarded([&] {
    Recorder &recorder = RecorderRegistry::current();
    if (MemoryPool *pool = ledger.pool(pool_key, kind)) {
      Node *node = pythonContext(recorder, currentFrame(recorder), recorder.innermost());
      ledger.allocated(recorder, node, pool, address, bytes);
    }
  });
  if (!is_noted) {
    RecorderCounters::bump(ledger.counters.untracked);
  }
}

int hookMemalign(void **address, size_t alignment, size_t bytes) {
  int error = trueFunction(g_true_memalign)(address, alignment, bytes);
  if (error == 0 && RecorderRegistry::isRecording()) {
    noteAllocation(*address, bytes, 0, "cpu");
  }
  return error;
}

void hookFree(void *address) {
  if (address && RecorderRegistry::isRecording()) {
    AllocationLedger::instance().freed(address);
  }
  trueFunction(g_true_free)(address);
}

/// One allocator of devices, and what PyTorch calls its devices.
struct DeviceAllocator {
  const char *library;
  const char *kind;
  Report replacement;
  Hook hook;
  std::atomic<Report> true_report{nullptr};
};

template <size_t index>
void hookReport(void *address, int64_t bytes, size_t allocated, size_t reserved,
                abi::Device device);

DeviceAllocator g_devices[] = {{"libc10_cuda.so", "cuda", hookReport<0>, {}},
                               {"libc10_hip.so", "cuda", hookReport<1>, {}},
                               {"libc10_xpu.so", "xpu", hookReport<2>, {}}};

void noteReport(void *address, int64_t bytes, size_t reserved, abi::Device device,
                const char *kind) {
  if (!RecorderRegistry::isRecording()) {
    return;
  }
  auto key = static_cast<uint16_t>(static_cast<uint8_t>(device.type) << 8 |
                                   static_cast<uint8_t>(device.index));
  AllocationLedger &ledger = AllocationLedger::instance();
  if (bytes > 0) {
    noteAllocation(address, static_cast<uint64_t>(bytes), key, kind);
    guarded([&] {
      if (MemoryPool *pool = ledger.pool(key, kind)) {
        ledger.noteReserved(pool, reserved);
      }
    });
  } else {
    ledger.freed(address);
  }
}

template <size_t index>
void hookReport(void *address, int64_t bytes, size_t allocated, size_t reserved,
                abi::Device device) {
  DeviceAllocator &allocator = g_devices[index];
  noteReport(address, bytes, reserved, device, allocator.kind);
  trueFunction(allocator.true_report)(address, bytes, allocated, reserved, device);
}

/// The last allocation and free of the checking thread.
struct Check {
  pthread_t thread;
  std::atomic<void *> allocated{nullptr};
  std::atomic<uint64_t> bytes{0};
  std::atomic<void *> freed{nullptr};
};
Check g_check;

bool isChecking() {
  return pthread_equal(g_check.thread, pthread_self());
}

int checkMemalign(void **address, size_t alignment, size_t bytes) {
  int error = trueFunction(g_true_memalign)(address, alignment, bytes);
  if (error == 0 && isChecking()) {
    g_check.allocated = *address;
    g_check.bytes = bytes;
  }
  return error;
}

void checkFree(void *address) {
  Free free = trueFunction(g_true_free); // first: its fence is also that of `isChecking`
  if (isChecking()) {
    g_check.freed = address;
  }
  free(address);
}

/// Find a slot and the function that the library calls through it.
bool findHook(Hook &hook, const char *library, const char *symbol, std::string *reason) {
  if (hook.is_buried || hook.isInPlace()) { // the original is known
    return true;
  }
  if (!hook.slot.find(library, symbol, reason)) {
    return false;
  }
  hook.original = hook.slot.target();
  if (!hook.original) { // not called yet: what the linker will find
    hook.original = dlsym(RTLD_DEFAULT, symbol);
  }
  if (!hook.original) {
    *reason = std::string(library) + " calls " + symbol + ", which this process does not have";
    return false;
  }
  return true;
}

} // namespace

void startMemory() {
  AllocationLedger::instance().begin(RecorderRegistry::generation(), stageOf);
}

bool findHostAllocator(std::string *reason) {
  if (!findHook(g_memalign, kHostLibrary, "posix_memalign", reason) ||
      !findHook(g_free, kHostLibrary, "free", reason)) {
    return false;
  }
  g_memalign.replacement = reinterpret_cast<void *>(hookMemalign);
  g_free.replacement = reinterpret_cast<void *>(hookFree);
  g_true_memalign = reinterpret_cast<Memalign>(g_memalign.original);
  g_true_free = reinterpret_cast<Free>(g_free.original);
  return true;
}

void beginHostCheck() {
  g_check.thread = pthread_self();
  g_check.allocated = nullptr;
  g_check.freed = nullptr;
  g_check.bytes = 0;
  if (!g_memalign.is_buried && !g_free.is_buried) {
    g_memalign.slot.set(reinterpret_cast<void *>(checkMemalign));
    g_free.slot.set(reinterpret_cast<void *>(checkFree));
  }
}

bool finishHostCheck(uintptr_t address, uint64_t bytes, std::string *reason) {
  if (g_memalign.is_buried || g_free.is_buried) { // checked when they were installed
    return g_is_host_watched = true;
  }
  auto *expected = reinterpret_cast<void *>(address);
  if (g_check.allocated == expected && g_check.bytes == bytes && g_check.freed == expected) {
    g_memalign.put();
    g_free.put();
    return g_is_host_watched = true;
  }
  g_memalign.slot.set(g_memalign.original);
  g_free.slot.set(g_free.original);
  const char *what = g_check.allocated != expected ? "does not come from posix_memalign"
                     : g_check.bytes != bytes      ? "is requested in another size"
                                                   : "is not released by free";
  *reason = std::string("memory of a tensor ") + what + " of " + kHostLibrary;
  return false;
}

std::vector<std::string> watchDevices() {
  std::vector<std::string> libraries;
  void *host = dlopen(kHostLibrary, RTLD_NOLOAD | RTLD_LAZY);
  void *report = host ? dlsym(host, kReport) : nullptr;
  for (DeviceAllocator &device : g_devices) {
    Hook &hook = device.hook;
    std::string reason;
    bool is_known = hook.is_buried || hook.isInPlace();
    if (!report || (!is_known && !hook.slot.find(device.library, kReport, &reason))) {
      continue;
    }
    if (!is_known) {
      void *target = hook.slot.target();
      hook.replacement = reinterpret_cast<void *>(device.replacement);
      hook.original = target ? target : report;
      device.true_report = reinterpret_cast<Report>(hook.original);
      hook.put();
    }
    libraries.emplace_back(device.library);
  }
  if (host) {
    dlclose(host);
  }
  return libraries;
}

bool isMemoryWatched() {
  bool is_watched = !g_is_host_watched || (g_memalign.isInPlace() && g_free.isInPlace());
  for (const DeviceAllocator &device : g_devices) {
    is_watched = is_watched && (!device.hook.replacement || device.hook.isInPlace());
  }
  return is_watched;
}

void stopMemory() {
  AllocationLedger::instance().freeze();
  if (g_is_host_watched) {
    g_memalign.remove();
    g_free.remove();
    g_is_host_watched = false;
  }
  for (DeviceAllocator &device : g_devices) {
    device.hook.remove();
  }
}

} // namespace deepcontext::torch
