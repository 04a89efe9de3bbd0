#include "gpu/hip/runtime.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/text.h"
#include "gpu/deadline.h"

namespace deepcontext::gpu {

namespace {

constexpr std::string_view kUuidMark = "GPU-";

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

bool isNumber(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// The index of the GPU that `entry` names; the number of GPUs when there is none.
size_t placeOf(std::string_view entry, const std::vector<HipGpu> &gpus) {
  if (isNumber(entry)) {
    return std::min<size_t>(std::strtoul(std::string(entry).c_str(), nullptr, 10), gpus.size());
  }
  if (!startsWith(entry, kUuidMark)) {
    return gpus.size();
  }
  std::string digits(entry.substr(kUuidMark.size()));
  char *end = nullptr;
  uint64_t uuid = std::strtoull(digits.c_str(), &end, 16);
  if (digits.empty() || *end != '\0') {
    return gpus.size();
  }
  auto found = std::find_if(gpus.begin(), gpus.end(),
                            [uuid](const HipGpu &gpu) { return gpu.uuid == uuid; });
  return static_cast<size_t>(found - gpus.begin());
}

std::vector<HipGpu> select(const std::vector<HipGpu> &gpus, std::string_view list) {
  if (list.empty()) {
    return gpus;
  }
  std::vector<HipGpu> chosen;
  std::vector<bool> is_chosen(gpus.size(), false);
  while (true) {
    size_t comma = list.find(',');
    std::string_view entry = list.substr(0, comma);
    while (!entry.empty() && entry.front() == ' ') {
      entry.remove_prefix(1);
    }
    while (!entry.empty() && entry.back() == ' ') {
      entry.remove_suffix(1);
    }
    size_t place = placeOf(entry, gpus);
    if (place == gpus.size()) {
      break;
    }
    if (!is_chosen[place]) {
      is_chosen[place] = true;
      chosen.push_back(gpus[place]);
    }
    if (comma == std::string_view::npos) {
      break;
    }
    list.remove_prefix(comma + 1);
  }
  return chosen;
}

} // namespace

void HipRuntime::find(const std::string &path) {
  set_device_ = nullptr;
  synchronize_ = nullptr;
  if (library_.openMapped(path)) {
    library_.bind(&set_device_, "hipSetDevice");
    library_.bind(&synchronize_, "hipDeviceSynchronize");
  }
}

std::string HipRuntime::synchronize(const std::vector<uint32_t> &devices, double deadline_s) {
  if (!set_device_ || !synchronize_ || devices.empty()) {
    return "";
  }
  bool is_back = runWithDeadline(
      [set_device = set_device_, synchronize = synchronize_, devices] {
        for (uint32_t device : devices) {
          if (set_device(static_cast<int>(device)) == 0) {
            synchronize();
          }
        }
      },
      deadline_s);
  return is_back ? "" : "waiting for the GPU did not end in time";
}

HipVisibility HipVisibility::ofProcess() {
  std::string hip = variable("HIP_VISIBLE_DEVICES");
  return {variable("ROCR_VISIBLE_DEVICES"), hip.empty() ? variable("CUDA_VISIBLE_DEVICES") : hip,
          variable("GPU_DEVICE_ORDINAL")};
}

std::vector<uint64_t> hipOrder(const std::vector<HipGpu> &gpus, const HipVisibility &visibility) {
  std::vector<HipGpu> shown = select(gpus, visibility.rocr);
  shown = select(shown, visibility.hip.empty() ? visibility.ordinal : visibility.hip);
  std::vector<uint64_t> handles;
  shown.insert(shown.end(), gpus.begin(), gpus.end());
  for (const HipGpu &gpu : shown) {
    if (std::find(handles.begin(), handles.end(), gpu.handle) == handles.end()) {
      handles.push_back(gpu.handle);
    }
  }
  return handles;
}

} // namespace deepcontext::gpu
