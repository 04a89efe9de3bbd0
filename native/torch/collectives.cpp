#include "torch/collectives.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unistd.h>

#include "core/text.h"

namespace deepcontext::torch {

namespace {

template <size_t count>
auto findName(const char *name, const std::array<const char *, count> &names) {
  return std::find_if(names.begin(), names.end(),
                      [name](const char *each) { return std::strcmp(name, each) == 0; });
}

} // namespace

std::optional<uint8_t> Collectives::operationOf(const char *name) {
  constexpr size_t kPrefix = sizeof "c10d::" - 1;
  if (!startsWith(name, "c10d::")) {
    return std::nullopt;
  }
  const auto *found = findName(name + kPrefix, kOperations);
  return found == kOperations.end()
             ? std::nullopt
             : std::make_optional(static_cast<uint8_t>(found - kOperations.begin()));
}

bool Collectives::isWork(const char *name) {
  static constexpr std::array<const char *, 6> kWorks = {
      "all_reduce", "sparse_all_reduce", "all_gather", "all_to_all", "reduce_scatter", "barrier",
  };
  constexpr size_t kPrefix = sizeof "gloo:" - 1;
  return startsWith(name, "gloo:") && findName(name + kPrefix, kWorks) != kWorks.end();
}

void Collectives::clear() {
  bool is_forked = process_ != getpid();
  process_ = getpid();
  if (is_forked) { // its holder does not exist in a forked child
    lock_.unlock();
  }
  Stretch::instance().clear(is_forked);
  std::lock_guard<SpinLock> guard(lock_);
  calls_ = first_pending_ = ended_ = unmatched_ = last_ticks_ = own_ticks_ = 0;
  called_ = {};
  own_before_ = {};
  thread_count_ = 0;
  sample_.clear();
}

void Collectives::call(GroupIndex group, uint8_t operation, uint64_t now) {
  Stretch::Parts parts = Stretch::instance().take();
  Stretch::instance().setInFlight(true);
  std::lock_guard<SpinLock> guard(lock_);
  if (calls_ - first_pending_ >= kMostPending) { // the oldest is taken for one without work
    unmatched_ += pending_[first_pending_++ % kMostPending].is_numbered;
  }
  own_ticks_ += last_ticks_ > 0 && now > last_ticks_ ? now - last_ticks_ : 0;
  Collective &place = pending_[calls_ % kMostPending];
  place = Collective();
  place.start_ticks = now;
  place.own_ticks = own_ticks_ - own_before_[group];
  place.order = static_cast<uint32_t>(calls_++);
  place.number = called_[group]++;
  place.group = group;
  place.operation = operation;
  place.is_numbered = true;
  last_ticks_ = now;
  own_before_[group] = own_ticks_;
  sample_.add(place.order, place.number, parts);
}

Collective Collectives::begin(int thread) {
  std::lock_guard<SpinLock> guard(lock_);
  learn(thread);
  Collective *place = oldestPending(thread);
  if (!place) {
    ++unmatched_;
    return {};
  }
  Collective found = *place;
  place->is_numbered = false;
  while (first_pending_ < calls_ && !pending_[first_pending_ % kMostPending].is_numbered) {
    ++first_pending_;
  }
  return found;
}

void Collectives::end(Collective collective, uint64_t now) {
  if (!collective.is_numbered) {
    return;
  }
  // The threads' counters may differ by a little.
  collective.duration_ticks = now > collective.start_ticks ? now - collective.start_ticks : 0;
  std::lock_guard<SpinLock> guard(lock_);
  ++ended_;
  last_ticks_ = std::max(last_ticks_, now);
  if (ended_ + unmatched_ >= calls_) {
    Stretch::instance().setInFlight(false);
  }
  sample_.add(collective);
}

Collectives::Reading Collectives::read() {
  Reading reading;
  reading.rows.reserve(Sample::kMostRows); // memory is not asked for under the lock
  reading.samples.reserve(Sample::kMostSamples);
  reading.called.reserve(kMostGroups);
  std::lock_guard<SpinLock> guard(lock_);
  reading.ended = ended_;
  reading.unmatched = unmatched_;
  reading.called.assign(called_.begin(), called_.end());
  sample_.copyTo(&reading.rows, &reading.samples);
  return reading;
}

// -- calls and works

Collective *Collectives::oldestPending(int thread) {
  const WorkThread *known = find(thread);
  for (uint64_t call = first_pending_; call < calls_; ++call) {
    Collective &place = pending_[call % kMostPending];
    if (place.is_numbered && (!known || place.group == known->group)) {
      return &place;
    }
  }
  return nullptr;
}

const Collectives::WorkThread *Collectives::find(int thread) const {
  const auto *end = threads_.begin() + thread_count_;
  const auto *found = std::find_if(
      threads_.begin(), end, [thread](const WorkThread &each) { return each.number == thread; });
  return found == end ? nullptr : found;
}

void Collectives::learn(int thread) {
  const Collective *first = nullptr;
  for (uint64_t call = first_pending_; call < calls_; ++call) {
    const Collective &place = pending_[call % kMostPending];
    if (place.is_numbered && first && place.group != first->group) {
      return;
    }
    first = place.is_numbered && !first ? &place : first;
  }
  if (first && thread_count_ < kMostThreads && !find(thread)) {
    threads_[thread_count_++] = {thread, first->group};
  }
}

} // namespace deepcontext::torch
