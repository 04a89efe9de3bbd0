// PC sampling of the fake CUPTI. Samples wait on the device until a window has been open, then in the
// library until the client reads them.
#include "cupti_stalls.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "abi/cupti.h"
#include "control.h"
#include "cupti_device.h"

namespace abi = deepcontext::abi::cupti;

#undef FAIL_IF_ASKED // here it asks the device for the fault by its own name

namespace {

constexpr int kInvalidOperation = 7;
constexpr uint32_t kNoLine = 0;
const std::string kPrefix = "smsp__pcsamp_warps_issue_stalled_";
// As a Hopper GPU lists them: counters of the sampling itself, then each reason twice, once for the
// samples in which no other warp could be issued either.
const char *const kCounters[] = {"smsp__pcsamp_sample_buffer_full",
                                 "smsp__pcsamp_samples_data_dropped"};
const char *const kReasons[] = {"barrier",  "imc_miss", "long_scoreboard", "math_pipe_throttle",
                                "selected", "wait"};

struct Sample {
  const char *kernel;
  std::string reason;
  uint32_t samples;
  uint32_t line;
};

struct Context {
  std::vector<uint32_t> reasons; // wanted, by index
  abi::PcSamplingData *data = nullptr;
  bool has_control = false;
  bool is_continuous = true; // CUPTI's default
  bool is_open = false;
  std::vector<Sample> ready;
};

struct Stalls {
  std::mutex mutex;
  std::map<void *, Context> contexts;
  std::vector<Sample> pending;
  std::vector<std::string> cubins;
  uint64_t misuses = 0;
  uint64_t left_enabled = 0; // contexts that were destroyed meanwhile: CUPTI goes on with the buffers
};

Stalls &stalls() {
  static Stalls *const stalls = new Stalls();
  return *stalls;
}

#define FAIL_IF_ASKED(function)                                                                    \
  do {                                                                                             \
    if (int code = fake::faultOf(function)) {                                                      \
      return code;                                                                                 \
    }                                                                                              \
  } while (0)

/// Number of the reason `name`, or of its subset that was not issued.
uint32_t indexOf(const std::string &name, bool is_not_issued) {
  uint32_t index = 10; // CUPTI's numbers do not begin at 0, and have gaps
  for (const char *reason : kReasons) {
    if (name == reason) {
      return index + is_not_issued;
    }
    index += 3;
  }
  return 0;
}

/// The lock is held.
int misuse(const char *what, bool is_one = true) {
  if (is_one) {
    std::fprintf(stderr, "fake CUPTI: misuse: %s\n", what);
    ++stalls().misuses;
  }
  return kInvalidOperation;
}

/// A call that hung on hardware while another thread was inside the driver: a misuse. It takes CUPTI's
/// lock and, below it, the driver's.
struct Apart {
  fake::cupti::ClientCall client;
  std::optional<fake::cupti::DriverLock> driver;

  Apart() = default;
  void lock() {
    client.lock();
    {
      std::lock_guard<std::mutex> lock(stalls().mutex);
      misuse("a thread is inside the driver", fake::cupti::state().calls_inside > 0);
    }
    driver.emplace(fake::cupti::DriverLock::For::kWriting);
  }
};

uint64_t crcOf(const char *bytes, size_t count) {
  uint64_t crc = 14695981039346656037u;
  for (size_t i = 0; i < count; ++i) {
    crc = (crc ^ static_cast<uint8_t>(bytes[i])) * 1099511628211u;
  }
  return crc;
}

/// Move samples that are ready into the client's buffer, behind what lies there.
void handOver(Context &context, abi::PcSamplingData *data) {
  size_t taken = 0;
  for (; taken < context.ready.size() && data->count < data->capacity; ++taken) {
    const Sample &sample = context.ready[taken];
    abi::PcData &pc = data->pcs[data->count++];
    const std::string &cubin = stalls().cubins.empty() ? "" : stalls().cubins.back();
    pc.cubin_crc = crcOf(cubin.data(), cubin.size());
    pc.offset = sample.line * 16; // the "line table" of this device
    pc.function_index = 1;
    pc.function = const_cast<char *>(sample.kernel);
    pc.stall_count = 0;
    for (bool is_not_issued : {false, true}) {
      uint32_t index = indexOf(sample.reason, is_not_issued);
      for (uint32_t wanted : context.reasons) {
        if (wanted == index) {
          pc.stalls[pc.stall_count++] = {index, sample.samples};
        }
      }
    }
    data->samples += sample.samples;
  }
  context.ready.erase(context.ready.begin(),
                      context.ready.begin() + static_cast<std::ptrdiff_t>(taken));
  data->remaining = context.ready.size();
}

} // namespace

namespace fake {

void resetStalls() {
  Stalls &s = stalls();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.contexts.clear();
  s.pending.clear();
  s.cubins.clear();
  s.misuses = s.left_enabled = 0;
}

size_t sampledContexts() {
  std::lock_guard<std::mutex> lock(stalls().mutex);
  return stalls().contexts.size();
}

uint64_t stallMisuses() {
  std::lock_guard<std::mutex> lock(stalls().mutex);
  return stalls().misuses;
}

uint64_t contextsLeftEnabled() {
  std::lock_guard<std::mutex> lock(stalls().mutex);
  return stalls().left_enabled;
}

void stallContextGone(void *context) {
  std::lock_guard<std::mutex> lock(stalls().mutex);
  auto found = stalls().contexts.find(context);
  if (found != stalls().contexts.end()) {
    ++stalls().left_enabled;
    stalls().contexts.erase(found);
  }
}

} // namespace fake

// -- the CUPTI interface

FAKE_API int cuptiPCSamplingEnable(abi::PcContextParameters *parameters) {
  fake::cupti::ClientCall client;
  FAIL_IF_ASKED("cuptiPCSamplingEnable");
  client.lock();
  {
    std::lock_guard<std::mutex> lock(fake::cupti::state().mutex);
    fake::cupti::state().kinds.erase(abi::kKindConcurrentKernel); // as newer releases may
  }
  std::lock_guard<std::mutex> lock(stalls().mutex);
  auto deviceOf = [](void *context) { return reinterpret_cast<uintptr_t>(context) / 0x1000; };
  for (const auto &[other, context] : stalls().contexts) {
    if (other != parameters->context && deviceOf(other) == deviceOf(parameters->context)) {
      return kInvalidOperation; // one context of a device at a time
    }
  }
  return stalls().contexts.emplace(parameters->context, Context()).second ? 0 : misuse("enabled twice");
}

FAKE_API int cuptiPCSamplingDisable(abi::PcContextParameters *parameters) {
  Apart apart;
  FAIL_IF_ASKED("cuptiPCSamplingDisable");
  apart.lock();
  std::lock_guard<std::mutex> lock(stalls().mutex);
  auto found = stalls().contexts.find(parameters->context);
  if (found == stalls().contexts.end()) {
    return misuse("not enabled");
  }
  misuse("disabled in a window", found->second.is_open);
  stalls().contexts.erase(found);
  return 0;
}

FAKE_API int cuptiPCSamplingGetNumStallReasons(abi::PcStallCountParameters *parameters) {
  fake::cupti::ClientCall client;
  FAIL_IF_ASKED("cuptiPCSamplingGetNumStallReasons");
  *parameters->count = std::size(kCounters) + 2 * std::size(kReasons);
  return 0;
}

FAKE_API int cuptiPCSamplingGetStallReasons(abi::PcStallNamesParameters *parameters) {
  fake::cupti::ClientCall client;
  FAIL_IF_ASKED("cuptiPCSamplingGetStallReasons");
  size_t at = 0;
  auto add = [&](uint32_t index, const std::string &name) {
    parameters->indices[at] = index;
    std::strncpy(parameters->names[at], name.c_str(), abi::kStallNameBytes - 1);
    ++at;
  };
  for (const char *counter : kCounters) {
    add(static_cast<uint32_t>(at + 1), counter);
  }
  for (const char *reason : kReasons) {
    add(indexOf(reason, false), kPrefix + reason);
    add(indexOf(reason, true), kPrefix + reason + "_not_issued");
  }
  return 0;
}

FAKE_API int cuptiPCSamplingSetConfigurationAttribute(abi::PcConfigurationParameters *parameters) {
  fake::cupti::ClientCall client;
  FAIL_IF_ASKED("cuptiPCSamplingSetConfigurationAttribute");
  client.lock();
  std::lock_guard<std::mutex> lock(stalls().mutex);
  auto found = stalls().contexts.find(parameters->context);
  if (found == stalls().contexts.end()) {
    return misuse("not enabled");
  }
  for (size_t i = 0; i < parameters->count; ++i) {
    const abi::PcConfiguration &wanted = parameters->attributes[i];
    if (wanted.attribute == abi::kPcStallReasons) {
      found->second.reasons.assign(wanted.stall_reasons.indices,
                                   wanted.stall_reasons.indices + wanted.stall_reasons.count);
    } else if (wanted.attribute == abi::kPcDataBuffer) {
      found->second.data = static_cast<abi::PcSamplingData *>(wanted.buffer);
    } else if (wanted.attribute == abi::kPcCollectionMode) {
      found->second.is_continuous = wanted.value == abi::kPcModeContinuous;
    } else if (wanted.attribute == abi::kPcStartStopControl) {
      found->second.has_control = wanted.value != 0;
    } else { // Blackwell does not sample where period or sizes are given
      misuse("an attribute that GPUs refuse");
    }
  }
  return found->second.data ? 0 : abi::kInvalidParameter;
}

FAKE_API int cuptiPCSamplingStart(abi::PcContextParameters *parameters) {
  Apart apart;
  FAIL_IF_ASKED("cuptiPCSamplingStart");
  apart.lock();
  bool has_overlap = false; // of recorded kernels, with which continuous sampling never ends
  {
    std::lock_guard<std::mutex> kinds(fake::cupti::state().mutex);
    has_overlap = fake::cupti::state().kinds.count(abi::kKindConcurrentKernel) > 0;
  }
  std::lock_guard<std::mutex> lock(stalls().mutex);
  auto found = stalls().contexts.find(parameters->context);
  if (found == stalls().contexts.end() || !found->second.has_control || found->second.is_open ||
      !found->second.ready.empty()) {
    return misuse("started twice, or with samples left");
  }
  misuse("continuous, beside kernels that overlap", found->second.is_continuous && has_overlap);
  found->second.is_open = true;
  return 0;
}

FAKE_API int cuptiPCSamplingStop(abi::PcContextParameters *parameters) {
  Apart apart;
  FAIL_IF_ASKED("cuptiPCSamplingStop");
  apart.lock();
  std::lock_guard<std::mutex> lock(stalls().mutex);
  auto found = stalls().contexts.find(parameters->context);
  if (found == stalls().contexts.end() || !found->second.is_open) {
    return misuse("stopped twice");
  }
  found->second.is_open = false;
  found->second.ready = std::move(stalls().pending);
  stalls().pending.clear();
  return 0;
}

FAKE_API int cuptiPCSamplingGetData(abi::PcGetDataParameters *parameters) {
  fake::cupti::ClientCall client;
  FAIL_IF_ASKED("cuptiPCSamplingGetData");
  client.lock();
  std::lock_guard<std::mutex> lock(stalls().mutex);
  auto found = stalls().contexts.find(parameters->context);
  if (found == stalls().contexts.end()) {
    return misuse("not enabled");
  }
  auto *data = static_cast<abi::PcSamplingData *>(parameters->data);
  misuse("read into CUPTI's own buffer", data == found->second.data);
  data->count = 0;
  handOver(found->second, data);
  return 0;
}

FAKE_API int cuptiGetCubinCrc(abi::CubinCrcParameters *parameters) {
  FAIL_IF_ASKED("cuptiGetCubinCrc");
  parameters->crc =
      crcOf(static_cast<const char *>(parameters->cubin), parameters->cubin_bytes);
  return 0;
}

FAKE_API int cuptiGetSassToSourceCorrelation(abi::SourceParameters *parameters) {
  FAIL_IF_ASKED("cuptiGetSassToSourceCorrelation");
  uint32_t line = static_cast<uint32_t>(parameters->offset / 16);
  if (line == kNoLine) {
    return abi::kInvalidParameter;
  }
  parameters->line = line;
  parameters->file = strdup("kernel.cu");
  parameters->folder = strdup("/src");
  return 0;
}

// -- the test's side; control.h says what each does

FAKE_API void fake_load_module() {
  static std::atomic<uint32_t> next{1};
  uint32_t module = next++;
  std::string cubin = "a cubin, number " + std::to_string(module);
  {
    std::lock_guard<std::mutex> lock(stalls().mutex);
    stalls().cubins.push_back(cubin);
  }
  fake::tellModuleLoaded(module, cubin.data(), cubin.size());
  std::memset(cubin.data(), 0, cubin.size()); // the client has its own copy, or none
}

FAKE_API void fake_stall(const char *kernel, const char *reason, uint32_t samples, uint32_t line) {
  const char *name = fake::sharedName(kernel);
  std::lock_guard<std::mutex> lock(stalls().mutex);
  stalls().pending.push_back({name, reason, samples, line});
}
