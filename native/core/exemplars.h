#pragma once
// Some steps kept whole: what their threads and devices did, one event after the other.
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/mutex.h"
#include "core/span_ring.h"
#include "core/step_history.h"
#include "core/varints.h"

namespace deepcontext {

/// The events of a thread or of a stream of a device in one step, a few bytes each, in the order in
/// which they ended.
class PackedSpans {
public:
  explicit PackedSpans(uint64_t from_ticks) : last_end_(from_ticks), from_ticks_(from_ticks) {}
  void add(const Span &span);
  template <typename Visit> void forEach(Visit visit) const {
    size_t place = 0;
    Span span;
    span.end_ticks = from_ticks_;
    while (place < numbers_.bytes()) {
      span.end_ticks += static_cast<uint64_t>(numbers_.signedNumber(&place));
      span.begin_ticks = span.end_ticks - numbers_.number(&place);
      span.node += static_cast<uint32_t>(numbers_.signedNumber(&place));
      visit(span);
    }
  }
  size_t count() const { return count_; }
  size_t bytes() const { return numbers_.bytes(); }

private:
  Varints numbers_;
  size_t count_ = 0;
  uint64_t last_end_;
  uint64_t from_ticks_;
  uint32_t last_node_ = 0;
};

/// Why a step is kept; one bit each.
enum ExemplarReason : uint8_t { kIsSlow = 1, kIsRandom = 2, kIsMarked = 4 };

/// A step with its events.
struct Exemplar {
  struct Lane {
    uint32_t recorder = 0;
    uint64_t lane = 0;       // see Span
    uint64_t known_from = 0; // what ended before is not known; 0: all is known
    PackedSpans spans;
  };

  uint64_t epoch = 0; // of the steps' count, as in StepsCut
  StepHistory::Step step;
  uint8_t reasons = 0;
  bool is_settled = false; // no more records of devices will come
  std::vector<Lane> lanes;

  size_t bytes() const;
};

/// What copying has cost.
struct ExemplarCosts {
  uint64_t copies = 0;  // of one step each
  uint64_t cpu_ns = 0;  // of all
  uint64_t refused = 0; // steps that were left out because of kMostBytes
};

/// The slowest steps, some random ones, and those that the program marks (core/step_history.h),
/// each with the events that the threads' rings still have when it is chosen. So their number of
/// bytes is constant, whatever the number of steps. Any thread; the mutex is held while steps are
/// copied, some milliseconds, so the GIL is not waited for.
class Exemplars {
public:
  static constexpr size_t kMostSpans = SpanRing::kSpans; // of a step; the last ones are kept
  static constexpr size_t kMostBytes = 16u << 20;        // of all steps

  static Exemplars &instance() {
    static Exemplars *const exemplars = new Exemplars();
    return *exemplars;
  }

  /// Begin a session; does nothing unless its recorders take spans.
  void begin();
  /// End what is going on: no more copies.
  void end();
  /// Copy the steps that have been chosen since, and drop those that no longer are.
  void update();
  /// Records of a device have arrived.
  void noteRecords();

  struct Reading {
    std::vector<Exemplar> exemplars; // by the number of the step
    ExemplarCosts costs;
  };
  /// After an update: all exemplars.
  Reading read();
  Mutex &forkLock() { return mutex_; }

private:
  // Copying takes at most this part of the time.
  static constexpr uint64_t kShare = 200;

  void updateLocked();
  void copy(Exemplar *exemplar, bool is_new);
  Exemplar *find(uint64_t epoch, uint64_t number);
  size_t bytes() const;

  Mutex mutex_; // of everything below but the atomics
  std::atomic<bool> is_on_{false};
  std::atomic<bool> is_waiting_{false}; // for records of devices
  std::vector<Exemplar> exemplars_;
  ExemplarCosts costs_;
};

} // namespace deepcontext
