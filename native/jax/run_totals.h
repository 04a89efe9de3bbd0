#pragma once
// Sums over a program's runs in the windows. Not thread-safe.
#include <cstdint>
#include <vector>

#include "jax/program.h"
#include "jax/xspace.h"

namespace deepcontext::jax {

/// Sums over the sampled executions of one operation, in ns, weighted by run.
struct OperationTotals {
  double count = 0;
  double total_ns = 0; // without the operations it runs (while, call, conditional)
  double minimum_ns = 0;
  double maximum_ns = 0;
  double squares_ns = 0;
};

/// Sampled runs of one program, launched by one node.
struct RunTotals {
  uint64_t launches = 0;                   // seen in windows
  uint64_t runs = 0;                       // measured whole
  double weight = 0;                       // sum of `weightOf` each
  std::vector<OperationTotals> operations; // by index in Program::operations

  void add(const Program &program, const Run &run, double weight);
  /// Add another's runs, as if there had been `factor` times as many.
  void add(const RunTotals &other, double factor = 1);
  /// Sum over the operations, weighted as they are.
  double totalNs() const;
};

/// The number of runs that a whole run stands for: 1 / (1 - length / window), because the edges of
/// a window cut a long run more often than a short one. At most 4, so that no single run dominates
/// a mean.
double weightOf(const Run &run, const TraceWindow &window);

} // namespace deepcontext::jax
