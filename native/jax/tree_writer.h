#pragma once
// Writes sampled operation times, scaled to the exact launch counts, below the launching nodes.
#include <cstdint>
#include <map>
#include <utility>

#include "core/thread_tree.h"
#include "core/without_gil.h"

namespace deepcontext::jax {

/// Estimate for one operation over the whole run.
struct OperationTime {
  uint64_t executions = 0;
  uint64_t device_ns = 0; // of a call of Python: what it took the host
  bool is_callback = false;
  bool is_count_estimated = false; // `executions` was not counted and does not follow from launches
};

struct WrittenCounts {
  uint64_t launches = 0;           // of all jitted functions, exact
  uint64_t unsampled_launches = 0; // of programs that never ran in a window
  uint64_t launches_by_parts = 0;  // of programs that no window saw whole
  uint64_t borrowed_launches = 0;  // estimated from the program's runs from other call paths
  double device_ns = 0;
  /// By program and operation, over all call sites: two programs may share nodes of the tree.
  std::map<std::pair<uint32_t, uint32_t>, OperationTime> operations;
};

/// Rewrite the tree below the dispatch nodes, in a recorder without a thread. No reader may be
/// active.
WrittenCounts writeOperationTimes(WithoutGil without_gil);

} // namespace deepcontext::jax
