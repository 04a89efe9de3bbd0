#include "torch/collectives.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <unistd.h>

#include "core/recorder.h"
#include "core/text.h"

namespace deepcontext::torch {

namespace {

template <size_t count>
auto findName(const char *name, const std::array<const char *, count> &names) {
  return std::find_if(names.begin(), names.end(),
                      [name](const char *each) { return std::strcmp(name, each) == 0; });
}

} // namespace

CollectiveRow::CollectiveRow(const Collective &call, uint64_t bytes)
    : own_ticks(call.own_ticks), size_bytes(std::min(bytes, kMostBytes) & kMostBytes),
      exposed(ExposedShare::kUnknown), order(call.order), number(call.number), group(call.group),
      operation(call.operation) {}

uint16_t ExposedShare::of(double share) {
  constexpr double kMost = kUnknown - 1;
  return static_cast<uint16_t>(std::lround(std::min(std::max(share * kUnit, 0.0), kMost)));
}

std::optional<uint8_t> Collectives::operationOf(const char *name) {
  constexpr size_t kPrefix = sizeof "c10d::" - 1;
  if (!startsWith(name, "c10d::")) {
    return std::nullopt;
  }
  const auto *found = findName(name + kPrefix, kOperations);
  return found - kOperations.begin() >= kHostOperations
             ? std::nullopt
             : std::make_optional(static_cast<uint8_t>(found - kOperations.begin()));
}

std::optional<uint8_t> Collectives::operationOnDevice(std::string_view name) {
  // Source: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, second argument but two of
  // RECORD_PARAM_COMMS_DATA; by index of kOperations. all_to_allv is alltoall_base with splits.
  static constexpr std::array<std::string_view, 12> kNames = {
      "allreduce",
      "allreduce_coalesced",
      "all_gather",
      "_allgather_base",
      "all_to_all",
      "all_to_allv",
      "reduce_scatter",
      "_reduce_scatter_base",
      "barrier",
      "allgather_into_tensor_coalesced",
      "reduce_scatter_tensor_coalesced",
      "allreduce_sparse",
  };
  const auto *found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) {
    return std::nullopt;
  }
  auto index = static_cast<uint8_t>(found - kNames.begin());
  return index < kOperations.size() ? index : 0; // the sparse one is an allreduce
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
  calls_ = first_pending_ = ended_ = unmatched_ = last_ticks_ = own_ticks_ = charged_ns_ = 0;
  calls_on_device_ = ended_on_device_ = device_end_ns_ = device_own_ns_ = 0;
  called_ = {};
  own_before_ = device_own_before_ = {};
  thread_count_ = 0;
  sample_.clear();
  CollectiveLaunches::instance().clear();
}

uint32_t Collectives::call(GroupIndex group, uint8_t operation, uint64_t now) {
  Stretch::Parts parts = Stretch::instance().take();
  Stretch::instance().setInFlight(true);
  std::lock_guard<SpinLock> guard(lock_);
  return append(group, operation, now, parts).order;
}

uint32_t Collectives::callOnDevice(uint32_t order, GroupIndex group, uint8_t operation,
                                   uint64_t size_bytes, uint64_t now) {
  Stretch::Parts parts;
  if (order == kNoCall) {
    parts = Stretch::instance().take();
  }
  std::lock_guard<SpinLock> guard(lock_);
  Collective *place = order == kNoCall ? nullptr : &pending_[order % kMostPending];
  if (!place || place->order != order || !place->is_numbered) {
    place = &append(group, operation, now, parts);
  }
  ++calls_on_device_;
  withdraw(place);
  CollectiveRow row(*place, size_bytes);
  row.own_ticks = 0;
  row.number = called_[group]++;
  row.group = group;
  row.operation = operation;
  row.is_on_device = true;
  sample_.renumber(row.order, row.number);
  sample_.add(row);
  return row.order;
}

/// A call that waits for its work.
Collective &Collectives::append(GroupIndex group, uint8_t operation, uint64_t now,
                                const Stretch::Parts &parts) {
  if (calls_ - first_pending_ >= kMostPending) { // the oldest is taken for one without work
    unmatched_ += pending_[first_pending_++ % kMostPending].is_numbered;
  }
  own_ticks_ += last_ticks_ > 0 && now > last_ticks_ ? now - last_ticks_ : 0;
  Collective &place = pending_[calls_ % kMostPending];
  place = Collective();
  place.start_ticks = now;
  place.own_ticks = own_ticks_ - own_before_[group];
  place.waited_ns = Stretch::instance().waitedNs();
  place.order = static_cast<uint32_t>(calls_++);
  place.number = called_[group]++;
  place.group = group;
  place.operation = operation;
  place.is_numbered = true;
  last_ticks_ = now;
  own_before_[group] = own_ticks_;
  sample_.add(place.order, place.number, parts);
  return place;
}

/// A call, the newest of its group, gets no work on the host.
void Collectives::withdraw(Collective *place) {
  bool is_newest = place->number + 1 == called_[place->group];
  called_[place->group] -= is_newest;
  unmatched_ += !is_newest; // threads call collectives of one group at once
  place->is_numbered = false;
  dropWithoutWork();
  if (ended_ + unmatched_ + calls_on_device_ >= calls_) {
    Stretch::instance().setInFlight(false);
  }
}

void Collectives::dropWithoutWork() {
  while (first_pending_ < calls_ && !pending_[first_pending_ % kMostPending].is_numbered) {
    ++first_pending_;
  }
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
  dropWithoutWork();
  return found;
}

void Collectives::end(Collective collective, uint64_t now) {
  if (!collective.is_numbered) {
    return;
  }
  double ns_per_tick = RecorderRegistry::instance().clock().nsPerTick();
  CollectiveRow row(collective, 0);
  // The threads' counters may differ by a little.
  row.duration_ticks = now > collective.start_ticks ? now - collective.start_ticks : 0;
  std::lock_guard<SpinLock> guard(lock_);
  ++ended_;
  last_ticks_ = std::max(last_ticks_, now);
  if (ended_ + unmatched_ + calls_on_device_ >= calls_) {
    Stretch::instance().setInFlight(false);
  }
  row.exposed = exposedShare(collective, row.duration_ticks, ns_per_tick);
  sample_.add(row);
}

/// What was waited since the call and is charged to no other collective: of those in flight
/// together, the one that ends first is charged.
uint16_t Collectives::exposedShare(const Collective &collective, uint64_t ticks,
                                   double ns_per_tick) {
  uint64_t waited = Stretch::instance().waitedNs();
  uint64_t before = std::max(collective.waited_ns, charged_ns_);
  charged_ns_ = waited;
  if (!Stretch::instance().isSampled() || ticks == 0) {
    return ExposedShare::kUnknown;
  }
  return ExposedShare::of(static_cast<double>(waited - before) /
                          (static_cast<double>(ticks) * ns_per_tick));
}

void Collectives::endOnDevice(uint32_t order, const DeviceWork &work) {
  double ns_per_tick = RecorderRegistry::instance().clock().nsPerTick();
  auto toTicks = [=](uint64_t ns) {
    return static_cast<uint64_t>(static_cast<double>(ns) / ns_per_tick);
  };
  std::lock_guard<SpinLock> guard(lock_);
  bool is_after = device_end_ns_ > 0 && work.start_ns > device_end_ns_;
  device_own_ns_ += is_after ? work.start_ns - device_end_ns_ : 0;
  device_end_ns_ = std::max(device_end_ns_, work.end_ns);
  CollectiveRow *row = sample_.find(order);
  if (!row) { // not one of those that are kept, so that its group is not known
    device_own_before_.fill(device_own_ns_);
    return;
  }
  auto before = static_cast<double>(row->duration_ticks);
  if (row->duration_ticks == 0) {
    ++ended_on_device_;
    row->exposed = 0;
    row->own_ticks = toTicks(device_own_ns_ - device_own_before_[row->group]);
    device_own_before_[row->group] = device_own_ns_;
  }
  row->duration_ticks += std::max<uint64_t>(toTicks(work.end_ns - work.start_ns), 1);
  double exposed =
      ExposedShare::value(row->exposed) * before + static_cast<double>(toTicks(work.exposed_ns));
  row->exposed = ExposedShare::of(exposed / static_cast<double>(row->duration_ticks));
}

Collectives::Reading Collectives::read() {
  Reading reading;
  reading.rows.reserve(Sample::kMostRows); // memory is not asked for under the lock
  reading.samples.reserve(Sample::kMostSamples);
  reading.called.reserve(kMostGroups);
  std::lock_guard<SpinLock> guard(lock_);
  reading.ended = ended_;
  reading.ended_on_device = ended_on_device_;
  reading.unmatched = unmatched_;
  reading.called.assign(called_.begin(), called_.end());
  sample_.copyTo(&reading.rows, &reading.samples);
  auto has_not_ended = [](const CollectiveRow &row) {
    return row.is_on_device && row.duration_ticks == 0;
  };
  reading.rows.erase(std::remove_if(reading.rows.begin(), reading.rows.end(), has_not_ended),
                     reading.rows.end());
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
