#pragma once
// Samples of where kernels wait, independent of the vendor.
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace deepcontext::gpu {

/// Why and where an instruction waited; file and line are 0 where the kernel has no line
/// information.
struct StallPlace {
  uint32_t reason; // interned
  uint32_t file;   // interned
  uint32_t line;
  bool operator<(const StallPlace &other) const {
    return reason != other.reason ? reason < other.reason
           : file != other.file   ? file < other.file
                                  : line < other.line;
  }
};

/// New samples by kernel name. Written by the sampling thread, emptied when the tree is updated.
class StallTable {
public:
  using Places = std::map<StallPlace, uint64_t>;
  using Kernels = std::map<uint32_t, Places>; // by interned name

  void add(uint32_t kernel, const StallPlace &place, uint64_t samples) {
    std::lock_guard<std::mutex> lock(mutex_);
    kernels_[kernel][place] += samples;
  }
  Kernels take() {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(kernels_, {});
  }

private:
  std::mutex mutex_;
  Kernels kernels_;
};

/// Divide `samples` in proportion to `weights`. The parts add up to `samples`; the largest
/// remainders get the rest.
std::vector<uint64_t> shareOut(uint64_t samples, const std::vector<uint64_t> &weights);

} // namespace deepcontext::gpu
