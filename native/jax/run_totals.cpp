#include "jax/run_totals.h"

#include <algorithm>

namespace deepcontext::jax {

namespace {

constexpr double kMostWeight = 4;

} // namespace

double weightOf(const Run &run, const TraceWindow &window) {
  if (window.end_ns <= window.start_ns || run.end_ns <= run.start_ns) {
    return 1;
  }
  double share = static_cast<double>(run.end_ns - run.start_ns) /
                 static_cast<double>(window.end_ns - window.start_ns);
  return 1 / std::max(1 - share, 1 / kMostWeight);
}

void RunTotals::add(const Program &program, const Run &run, double run_weight) {
  operations.resize(std::max(operations.size(), program.operations.size()));
  ++runs;
  weight += run_weight;
  for (const auto &[name, times] : run.operations) {
    auto known = program.by_name.find(name);
    if (known == program.by_name.end()) {
      continue;
    }
    const Operation &operation = program.operations[known->second];
    double inside_ns = 0;
    for (uint32_t nested : operation.nested) {
      auto inner = run.operations.find(program.operations[nested].name);
      if (inner != run.operations.end()) {
        inside_ns += static_cast<double>(inner->second.total_ps) / 1000;
      }
    }
    OperationTotals &totals = operations[known->second];
    double total_ns = static_cast<double>(times.total_ps) / 1000;
    double minimum_ns = static_cast<double>(times.minimum_ps) / 1000;
    double maximum_ns = static_cast<double>(times.maximum_ps) / 1000;
    double squares_ns = times.squares_ns;
    if (inside_ns > 0) { // bodies may run at the same time on several threads
      total_ns = std::max(0.0, total_ns - inside_ns);
      minimum_ns = maximum_ns = total_ns / static_cast<double>(times.count);
      squares_ns = minimum_ns * total_ns;
    }
    totals.minimum_ns = totals.count == 0 ? minimum_ns : std::min(totals.minimum_ns, minimum_ns);
    totals.maximum_ns = std::max(totals.maximum_ns, maximum_ns);
    totals.total_ns += total_ns * run_weight;
    totals.squares_ns += squares_ns * run_weight;
    totals.count += static_cast<double>(times.count) * run_weight;
  }
}

double RunTotals::totalNs() const {
  double sum_ns = 0;
  for (const OperationTotals &operation : operations) {
    sum_ns += operation.total_ns;
  }
  return sum_ns;
}

void RunTotals::add(const RunTotals &other, double factor) {
  launches += other.launches;
  runs += other.runs;
  weight += other.weight * factor;
  operations.resize(std::max(operations.size(), other.operations.size()));
  for (size_t i = 0; i < other.operations.size(); ++i) {
    const OperationTotals &from = other.operations[i];
    OperationTotals &to = operations[i];
    if (from.count == 0) {
      continue;
    }
    to.minimum_ns = to.count == 0 ? from.minimum_ns : std::min(to.minimum_ns, from.minimum_ns);
    to.maximum_ns = std::max(to.maximum_ns, from.maximum_ns);
    to.total_ns += from.total_ns * factor;
    to.squares_ns += from.squares_ns * factor;
    to.count += from.count * factor;
  }
}

} // namespace deepcontext::jax
