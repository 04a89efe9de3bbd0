#pragma once
// Classes of HIP functions, and HIP graphs, whose kernels are identified by their order.
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
  kMemset, // by a kernel of the run time
  kBeginCapture,
  kEndCapture,
  kAddNode, // of a kernel, by a library that captures nothing
  kInstantiate,
  kGraphLaunch,
  kDestroyGraph,
  kDestroyExecutable,
};

HipFunction classifyHip(std::string_view function);
/// Whether a function does more than return a known value.
bool isWorthATime(std::string_view function);

/// HIP reports neither the graph node of a kernel nor where it was captured. Both follow from
/// order: the n-th kernel captured on a thread, or put into the graph by a library, is the n-th
/// that a replay dispatches. An update of the executable graph changes neither. Exact for graphs
/// without parallel branches. A graph whose replay dispatches another number of kernels than were
/// captured (some copies are kernels) loses its nodes, and is counted. Called on the program's
/// threads.
class HipGraphs {
public:
  explicit HipGraphs(GraphTable &table) : table_(table) {}

  void beginCapture();
  /// A kernel was launched on the calling thread; recorded if the thread captures.
  void noteKernel(TreePlace place);
  bool isCapturing() const;
  /// A kernel was put into a graph without a capture.
  void added(const void *graph, TreePlace place);
  void endCapture(const void *graph);
  void instantiated(const void *executable, const void *graph);
  void destroyed(const void *graph);
  /// The calling thread replays `executable` from here to endReplay().
  void beginReplay(const void *executable);
  void endReplay();
  /// The graph node of the kernel that the calling thread's replay dispatches next; 0 outside a
  /// replay.
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
