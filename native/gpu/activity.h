#pragma once
// What a device did, independent of the vendor.
#include <cstdint>

namespace deepcontext::gpu {

constexpr int kStreamBits = 20;

enum class ActivityKind : uint8_t { kKernel, kCopy, kMemset };

/// How a kernel was launched; zero for everything else.
struct LaunchShape {
  uint64_t grid_blocks = 0;
  uint32_t block_threads = 0;
  uint32_t registers = 0; // per thread
  uint64_t shared_bytes = 0;

  /// A hash of the four figures, to compare two launches in a row.
  uint64_t fingerprint() const {
    return (grid_blocks << 24 ^ static_cast<uint64_t>(block_threads) << 12 ^ registers) +
           (shared_bytes + 1) * 0x9E3779B97F4A7C15u;
  }
};

/// One record: a kernel, copy or memset that ran.
struct Activity {
  ActivityKind kind;
  uint32_t correlation;
  uint32_t name; // interned
  uint32_t device;
  uint32_t stream;   // with CUPTI, the number of its context is above kStreamBits
  uint64_t start_ns; // on the device's time line
  uint64_t end_ns;
  uint64_t bytes;         // moved or set; 0 for kernels
  uint64_t graph_node;    // of the executable graph; 0 when launched directly
  uint64_t captured_node; // of the graph it was made from; 0 when the vendor does not say
  LaunchShape shape;
  bool is_communication = false; // of a collective library whose launches the vendor does not name
};

} // namespace deepcontext::gpu
