#include "core/exemplars.h"

#include <algorithm>
#include <map>

#include "core/recorder.h"
#include "core/steps.h"

namespace deepcontext {

namespace {

struct Chosen {
  StepHistory::Step step;
  uint8_t reasons = 0;
};

/// By number.
std::map<uint64_t, Chosen> chosenSteps(const StepHistory &history) {
  std::map<uint64_t, Chosen> chosen;
  auto add = [&](const auto &steps, ExemplarReason reason) {
    for (const StepHistory::Step &step : steps) {
      if (step.number > 0) {
        chosen[step.number].step = step;
        chosen[step.number].reasons |= reason;
      }
    }
  };
  add(history.slowest(), kIsSlow);
  add(history.random(), kIsRandom);
  add(history.marked(), kIsMarked);
  return chosen;
}

/// What the recorders of one kind have of a step.
struct Found {
  uint32_t recorder;
  SpanRing::Copy copy;
};

/// The moment from which on all spans together are at most `most`.
uint64_t momentToKeepFrom(const std::vector<Found> &found, size_t most) {
  std::vector<uint64_t> ends;
  for (const Found &each : found) {
    for (const Span &span : each.copy.spans) {
      ends.push_back(span.end_ticks);
    }
  }
  if (ends.size() <= most) {
    return 0;
  }
  if (most == 0) {
    return *std::max_element(ends.begin(), ends.end()) + 1;
  }
  auto first = ends.end() - static_cast<ptrdiff_t>(most);
  std::nth_element(ends.begin(), first, ends.end());
  return *first;
}

std::vector<Exemplar::Lane> lanesOf(const Found &found, uint64_t from_ticks, uint64_t keep_from) {
  std::map<uint64_t, Exemplar::Lane> lanes;
  uint64_t known_from = std::max(found.copy.known_from, keep_from);
  for (const Span &span : found.copy.spans) {
    if (span.end_ticks >= keep_from) {
      auto lane = lanes.find(span.lane);
      if (lane == lanes.end()) {
        Exemplar::Lane fresh{found.recorder, span.lane, known_from, PackedSpans(from_ticks)};
        lane = lanes.emplace(span.lane, std::move(fresh)).first;
      }
      lane->second.spans.add(span);
    }
  }
  if (lanes.empty() && known_from > 0) { // it has to say that everything is lost
    return {{found.recorder, 0, known_from, PackedSpans(from_ticks)}};
  }
  std::vector<Exemplar::Lane> list;
  for (auto &[lane, own] : lanes) {
    list.push_back(std::move(own));
  }
  return list;
}

size_t countOf(const std::vector<Exemplar::Lane> &lanes, uint32_t recorder) {
  size_t count = 0;
  for (const Exemplar::Lane &lane : lanes) {
    count += lane.recorder == recorder ? lane.spans.count() : 0;
  }
  return count;
}

} // namespace

void PackedSpans::add(const Span &span) {
  ++count_;
  numbers_.putSigned(static_cast<int64_t>(span.end_ticks - last_end_));
  numbers_.put(span.end_ticks - std::min(span.begin_ticks, span.end_ticks));
  numbers_.putSigned(static_cast<int64_t>(span.node) - static_cast<int64_t>(last_node_));
  last_end_ = span.end_ticks;
  last_node_ = span.node;
}

size_t Exemplar::bytes() const {
  size_t sum = sizeof(Exemplar);
  for (const Lane &lane : lanes) {
    sum += sizeof lane + lane.spans.bytes();
  }
  return sum;
}

void Exemplars::begin() {
  std::lock_guard<Mutex> lock(mutex_);
  exemplars_.clear();
  costs_ = {};
  is_waiting_ = false;
  is_on_ = RecorderRegistry::instance().takesSpans();
  Steps::instance().wantCopies(is_on_);
}

void Exemplars::end() {
  Steps::instance().wantCopies(false);
}

void Exemplars::update() {
  std::lock_guard<Mutex> lock(mutex_);
  if (!is_on_) {
    return;
  }
  uint64_t cpu_before = clockNs(CLOCK_THREAD_CPUTIME_ID);
  updateLocked();
  uint64_t cost = clockNs(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
  costs_.cpu_ns += cost;
  double pause = static_cast<double>(cost * kShare);
  Steps::instance().pauseCopies(
      ticks() + static_cast<uint64_t>(pause / RecorderRegistry::instance().clock().nsPerTick()));
}

void Exemplars::updateLocked() {
  uint64_t epoch = 0;
  std::map<uint64_t, Chosen> chosen = chosenSteps(Steps::instance().history(&epoch));
  auto is_dropped = [&](const Exemplar &each) {
    return each.epoch != epoch || chosen.count(each.step.number) == 0;
  };
  exemplars_.erase(std::remove_if(exemplars_.begin(), exemplars_.end(), is_dropped),
                   exemplars_.end());
  for (Exemplar &each : exemplars_) {
    if (!each.is_settled) {
      copy(&each, false);
    }
  }
  for (const auto &[number, own] : chosen) {
    Exemplar *known = find(epoch, number);
    if (!known) {
      Exemplar fresh;
      fresh.epoch = epoch;
      fresh.step = own.step;
      copy(&fresh, true);
      exemplars_.push_back(std::move(fresh));
      known = &exemplars_.back();
    }
    known->reasons = own.reasons;
  }
  is_waiting_ = std::any_of(exemplars_.begin(), exemplars_.end(),
                            [](const Exemplar &each) { return !each.is_settled; });
}

Exemplar *Exemplars::find(uint64_t epoch, uint64_t number) {
  auto known = std::find_if(exemplars_.begin(), exemplars_.end(), [&](const Exemplar &each) {
    return each.epoch == epoch && each.step.number == number;
  });
  return known == exemplars_.end() ? nullptr : &*known;
}

/// Take what the rings have of the step: of threads when it is new, of devices until it is settled.
void Exemplars::copy(Exemplar *exemplar, bool is_new) {
  const StepHistory::Step &step = exemplar->step;
  uint64_t begin = step.end_ticks - std::min(step.duration, step.end_ticks);
  std::vector<Found> found;
  exemplar->is_settled = true;
  for (const Recorder *recorder : RecorderRegistry::instance().active()) {
    bool is_device = recorder->is_detached;
    if (!recorder->spans.isOn() || (!is_new && !is_device)) {
      continue;
    }
    found.push_back({recorder->index(), recorder->spans.copy(begin, step.end_ticks)});
    // Records arrive late: those of the step are there when a later one is.
    exemplar->is_settled &= !is_device || found.back().copy.newest_end > step.end_ticks;
  }
  size_t most = kMostSpans;
  for (const Exemplar::Lane &lane : exemplar->lanes) { // those that are not copied again
    bool is_again = std::any_of(found.begin(), found.end(),
                                [&](const Found &each) { return each.recorder == lane.recorder; });
    most -= is_again ? 0 : std::min(most, lane.spans.count());
  }
  uint64_t keep_from = momentToKeepFrom(found, most);
  for (const Found &each : found) {
    if (!is_new && each.copy.spans.size() <= countOf(exemplar->lanes, each.recorder)) {
      continue; // nothing new, or the ring has lost what it had
    }
    auto &lanes = exemplar->lanes;
    lanes.erase(std::remove_if(lanes.begin(), lanes.end(),
                               [&](const auto &lane) { return lane.recorder == each.recorder; }),
                lanes.end());
    for (Exemplar::Lane &lane : lanesOf(each, begin, keep_from)) {
      lanes.push_back(std::move(lane));
    }
  }
  costs_.copies += is_new;
  if (is_new && bytes() + exemplar->bytes() > kMostBytes) {
    exemplar->lanes.clear();
    exemplar->is_settled = true;
    ++costs_.refused;
  }
}

size_t Exemplars::bytes() const {
  size_t sum = 0;
  for (const Exemplar &each : exemplars_) {
    sum += each.bytes();
  }
  return sum;
}

void Exemplars::noteRecords() {
  if (is_waiting_.load(std::memory_order_relaxed)) {
    Steps::instance().askForCopy(ticks());
  }
}

Exemplars::Reading Exemplars::read() {
  std::lock_guard<Mutex> lock(mutex_);
  if (is_on_) {
    updateLocked();
  }
  Reading reading{exemplars_, costs_};
  std::sort(reading.exemplars.begin(), reading.exemplars.end(),
            [](const Exemplar &left, const Exemplar &right) {
              return left.step.number < right.step.number;
            });
  return reading;
}

} // namespace deepcontext
