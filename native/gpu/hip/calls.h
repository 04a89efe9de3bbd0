#pragma once
// HIP functions that matter, and graphs as HIP lets them be followed: by the order of their
// kernels.
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "gpu/graphs.h"

namespace deepcontext::gpu {

enum class HipFunction : uint8_t {
  kOther,
  kLaunch,       // of one kernel
  kWait,         // the host waits for the device
  kBlockingCopy, // feeds the device and waits for it
  kAsyncCopy,
  kMemset, // by a kernel of the run time's own
  kBeginCapture,
  kEndCapture,
  kInstantiate,
  kGraphLaunch,
  kDestroyGraph,
  kDestroyExecutable,
};

HipFunction classifyHip(std::string_view function);
/// Whether a function does more than to tell what is known already.
bool isWorthATime(std::string_view function);

/// HIP tells neither which graph node a kernel is of, nor who captured it; both are known by order:
/// the n-th kernel captured on a thread is the n-th that a replay dispatches. Exact for graphs
/// without parallel branches. A graph whose replay dispatches another number of kernels than were
/// captured (a copy may be one) loses its nodes, and is counted. Called on the program's threads.
class HipGraphs {
public:
  explicit HipGraphs(GraphTable &table) : table_(table) {}

  void beginCapture();
  /// A kernel was launched on the calling thread; noted if the thread captures.
  void noteKernel(TreePlace place);
  bool isCapturing() const;
  void endCapture(const void *graph);
  void instantiated(const void *executable, const void *graph);
  void destroyed(const void *graph);
  /// The calling thread replays `executable` from here to endReplay().
  void beginReplay(const void *executable);
  void endReplay();
  /// The graph node of the kernel that the calling thread's replay dispatches next; 0 outside of
  /// one.
  uint32_t nextNode();
  uint64_t outOfOrder() const { return out_of_order_.load(std::memory_order_relaxed); }
  void clear();

private:
  struct Executable {
    uint32_t first_node;
    uint32_t count;
    bool is_in_order = true;
  };
  GraphTable &table_;
  std::mutex mutex_;
  std::map<const void *, std::vector<TreePlace>> graphs_;
  std::map<const void *, Executable> executables_;
  uint32_t next_node_ = 1;
  std::atomic<uint64_t> out_of_order_{0};
};

} // namespace deepcontext::gpu
