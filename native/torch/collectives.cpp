#include "torch/collectives.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unistd.h>

#include "core/text.h"

namespace deepcontext::torch {

namespace {

constexpr uint32_t kRunBits = 6;
constexpr uint32_t kMostLevels = 26; // runs of 64 among 2^32 numbers

template <size_t count>
bool isOneOf(const char *name, const std::array<const char *, count> &names) {
  return std::any_of(names.begin(), names.end(),
                     [name](const char *each) { return std::strcmp(name, each) == 0; });
}

/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014 (SplitMix64).
uint64_t mixed(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

} // namespace

bool Collectives::isCall(const char *name) {
  static constexpr std::array<const char *, 9> kCalls = {
      "allreduce_", "allreduce_coalesced_", "allgather_",      "_allgather_base_",
      "alltoall_",  "alltoall_base_",       "reduce_scatter_", "_reduce_scatter_base_",
      "barrier",
  };
  constexpr size_t kPrefix = sizeof "c10d::" - 1;
  return startsWith(name, "c10d::") && isOneOf(name + kPrefix, kCalls);
}

bool Collectives::isWork(const char *name) {
  static constexpr std::array<const char *, 6> kWorks = {
      "all_reduce", "sparse_all_reduce", "all_gather", "all_to_all", "reduce_scatter", "barrier",
  };
  constexpr size_t kPrefix = sizeof "gloo:" - 1;
  return startsWith(name, "gloo:") && isOneOf(name + kPrefix, kWorks);
}

void Collectives::clear() {
  if (process_ != getpid()) { // its holder does not exist in a forked child
    process_ = getpid();
    lock_.unlock();
  }
  std::lock_guard<SpinLock> guard(lock_);
  called_ = begun_ = ended_ = unmatched_ = 0;
  row_count_ = level_ = 0;
}

void Collectives::call(uint64_t now) {
  std::lock_guard<SpinLock> guard(lock_);
  if (called_ - begun_ >= kMostPending) { // the oldest is taken for one without work
    ++begun_;
    ++unmatched_;
  }
  Collective &place = pending_[called_ % kMostPending];
  place = Collective();
  place.start_ticks = now;
  place.number = static_cast<uint32_t>(called_);
  place.is_numbered = true;
  place.overlaps = ended_ < called_;
  ++called_;
}

Collective Collectives::begin() {
  std::lock_guard<SpinLock> guard(lock_);
  if (begun_ == called_) {
    ++unmatched_;
    return {};
  }
  return pending_[begun_++ % kMostPending];
}

void Collectives::end(Collective collective, uint64_t now) {
  if (!collective.is_numbered) {
    return;
  }
  // The threads' counters may differ by a little.
  collective.duration_ticks = now > collective.start_ticks ? now - collective.start_ticks : 0;
  std::lock_guard<SpinLock> guard(lock_);
  ++ended_;
  if (isKept(collective.number)) {
    keep(collective);
  }
}

Collectives::Reading Collectives::read() {
  Reading reading;
  reading.rows.reserve(kMostRows); // memory is not asked for under the lock
  std::lock_guard<SpinLock> guard(lock_);
  reading.called = called_;
  reading.ended = ended_;
  reading.unmatched = unmatched_;
  reading.rows.assign(rows_.begin(), rows_.begin() + row_count_);
  return reading;
}

void Collectives::keep(const Collective &collective) {
  while (row_count_ == kMostRows && level_ < kMostLevels) {
    ++level_;
    auto *end = std::remove_if(rows_.begin(), rows_.begin() + row_count_,
                               [this](const Collective &row) { return !isKept(row.number); });
    row_count_ = static_cast<uint32_t>(end - rows_.begin());
  }
  if (row_count_ < kMostRows && isKept(collective.number)) {
    rows_[row_count_++] = collective;
  }
}

bool Collectives::isKept(uint32_t number) const {
  return (mixed(number >> kRunBits) & ((1ull << level_) - 1)) == 0;
}

} // namespace deepcontext::torch
