// The entry point that a program's copy of NVTX calls (NVTX_INJECTION64_PATH names this library).
// Passes on the ranges of XLA's domain; ranges of other domains cost a comparison. Any thread. The
// environment variable is set by collectors/jax/ranges.py only while jax loads its backend.
#include <map>
#include <string>
#include <string_view>

#include "abi/nvtx.h"
#include "core/guard.h"
#include "core/mutex.h"
#include "jax/device_ranges.h"

namespace deepcontext::jax {

namespace {

constexpr std::string_view kXlaDomain = "TSL"; // xla/tsl/profiler/backends/cpu, nvtx_utils.cc
constexpr size_t kMostTexts = 1u << 18;        // bounds the memory of a program that makes texts

struct Domain {
  bool is_xla;
};
Domain g_xla{true}, g_other{false};

/// Ranges by text. Never freed, because NVTX's handles point at them.
const DeviceRange *rangeOf(std::string_view text) {
  static Mutex *const mutex = new Mutex();
  static auto *const ranges = new std::map<std::string, DeviceRange, std::less<>>();
  static const DeviceRange too_many;
  std::lock_guard<Mutex> lock(*mutex);
  auto known = ranges->find(text);
  if (known != ranges->end()) {
    return &known->second;
  }
  if (ranges->size() >= kMostTexts) {
    return &too_many;
  }
  return &ranges->emplace(text, readDeviceRange(text)).first->second;
}

void *createDomain(const char *name) {
  return name && name == kXlaDomain ? &g_xla : &g_other;
}

const void *registerString(void *domain, const char *text) {
  return domain == &g_xla ? rangeOf(text ? text : "") : nullptr;
}

int push(void *domain, const abi::nvtx::EventAttributes *attributes) {
  if (domain == &g_xla && attributes) {
    static const DeviceRange unknown;
    const DeviceRange *range = &unknown;
    if (attributes->message && attributes->message_type == abi::nvtx::kMessageRegistered) {
      range = static_cast<const DeviceRange *>(attributes->message);
    } else if (attributes->message && attributes->message_type == abi::nvtx::kMessageAscii) {
      range = rangeOf(static_cast<const char *>(attributes->message));
    }
    pushDeviceRange(*range);
  }
  return 0;
}

int pop(void *domain) {
  if (domain == &g_xla) {
    popDeviceRange();
  }
  return 0;
}

} // namespace

} // namespace deepcontext::jax

extern "C" __attribute__((visibility("default"))) int
InitializeInjectionNvtx2(deepcontext::abi::nvtx::GetExportTable get) {
  namespace nvtx = deepcontext::abi::nvtx;
  namespace jax = deepcontext::jax;
  auto *table = static_cast<const nvtx::CallbacksTable *>(get(nvtx::kCallbacksTable));
  nvtx::FunctionPointer **functions = nullptr;
  unsigned count = 0;
  if (!table || table->size < sizeof(nvtx::CallbacksTable) ||
      !table->functionTable(nvtx::kModuleCore2, &functions, &count)) {
    return 0;
  }
  auto set = [&](unsigned place, auto *function) {
    if (place < count && functions[place]) {
      *functions[place] = reinterpret_cast<nvtx::FunctionPointer>(function);
    }
  };
  set(nvtx::kDomainCreateA, jax::createDomain);
  set(nvtx::kDomainRegisterStringA, deepcontext::Guarded<jax::registerString>::call);
  set(nvtx::kDomainRangePushEx, deepcontext::Guarded<jax::push>::call);
  set(nvtx::kDomainRangePop, deepcontext::Guarded<jax::pop>::call);
  jax::setInjected();
  return 1;
}
