#include "jax/run_parts.h"

#include <algorithm>
#include <utility>

namespace deepcontext::jax {

namespace {

// A run whose first operation comes this soon after the opening began before it: part of the
// window.
constexpr double kSoon = 0.1;

double ratio(uint64_t part, uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(whole, 1));
}

} // namespace

void RunParts::beginWindow(const TraceWindow &window) {
  gap_ns_ =
      last_end_ns_ != 0 && window.start_ns > last_end_ns_ ? window.start_ns - last_end_ns_ : 0;
  before_ = std::move(open_);
  open_.clear();
}

void RunParts::endWindow(const TraceWindow &window, const DeviceWaits &waits) {
  extend(before_, window.start_ns, waits, &sums_);
  before_.clear();
  last_end_ns_ = window.end_ns;
}

void RunParts::add(const Program &program, const Run &run, const TraceWindow &window,
                   bool is_launched_inside) {
  bool was_open = false;
  for (Open &open : before_) {
    if (open.program == program.uid) {
      open.is_seen_again = true;
      was_open |= open.run_id == run.run_id;
    }
  }
  uint64_t length_ns = window.end_ns > window.start_ns ? window.end_ns - window.start_ns : 0;
  bool is_soon =
      run.start_ns < window.start_ns || ratio(run.start_ns - window.start_ns, length_ns) < kSoon;
  bool began_before = was_open || (is_soon && !is_launched_inside);
  uint64_t start_ns = began_before ? window.start_ns : run.start_ns;
  uint64_t end_ns = std::max(run.is_complete ? run.end_ns : window.end_ns, run.end_ns);
  uint64_t seen_ns = end_ns > start_ns ? end_ns - start_ns : 1;
  RunTotals part;
  part.add(program, run, 1);
  Sum &sum = sums_[program.uid];
  sum.totals.add(part, began_before ? 1 + ratio(gap_ns_ / 2, seen_ns) : 1);
  sum.longest_ns = std::max(sum.longest_ns, part.totalNs());
  if (!run.is_complete) {
    open_.push_back({program.uid, run.run_id, seen_ns, std::move(part)});
  }
}

void RunParts::drop(uint32_t program) {
  sums_.erase(program);
  auto is_of_it = [&](const Open &open) { return open.program == program; };
  open_.erase(std::remove_if(open_.begin(), open_.end(), is_of_it), open_.end());
  before_.erase(std::remove_if(before_.begin(), before_.end(), is_of_it), before_.end());
}

void RunParts::extend(const std::vector<Open> &cut, uint64_t now_ns, const DeviceWaits &waits,
                      std::map<uint32_t, Sum> *sums) const {
  uint64_t half_ns = now_ns > last_end_ns_ ? (now_ns - last_end_ns_) / 2 : 0;
  uint64_t waited_ns = waits.between(last_end_ns_, now_ns);
  uint64_t rest_ns = waited_ns > 0 ? waited_ns : half_ns;
  for (const Open &open : cut) {
    (*sums)[open.program].totals.add(open.part,
                                     ratio(open.is_seen_again ? half_ns : rest_ns, open.seen_ns));
  }
}

std::map<uint32_t, RunParts::Sum> RunParts::sums(uint64_t now_ns, const DeviceWaits &waits) const {
  std::map<uint32_t, Sum> sums = sums_;
  extend(open_, now_ns, waits, &sums);
  return sums;
}

} // namespace deepcontext::jax
