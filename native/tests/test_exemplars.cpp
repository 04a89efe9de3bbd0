#include "core/exemplars.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/recorder.h"
#include "core/steps.h"
#include "tests/check.h"

using namespace deepcontext;

namespace {

/// A session whose steps have `spans` events of one tick each, and then a tick of their own.
class Run {
public:
  explicit Run(bool takes_spans = true) {
    registry_.begin(1000, takes_spans);
    recorder_ = &RecorderRegistry::current();
    node_ = recorder_->tree.child(recorder_->tree.root(), FrameKind::kOperator, 1, 0);
    Exemplars::instance().begin();
  }
  ~Run() {
    Exemplars::instance().end();
    registry_.end();
  }

  void step(uint64_t spans, bool is_kept = false, uint64_t pause = 1) {
    for (uint64_t i = 0; i < spans; ++i) {
      recorder_->spans.add(now_, now_ + 1, node_->id);
      ++now_;
    }
    now_ += pause;
    Steps::instance().pass({StepSource::kMark, 0, nullptr}, now_, is_kept);
    if (Steps::instance().takeDueCopy()) {
      Exemplars::instance().update();
      Steps::instance().pauseCopies(0);
    }
  }
  /// The exemplar of a step, null without.
  static const Exemplar *of(const Exemplars::Reading &reading, uint64_t number) {
    for (const Exemplar &each : reading.exemplars) {
      if (each.step.number == number) {
        return &each;
      }
    }
    return nullptr;
  }
  Recorder &recorder() { return *recorder_; }
  uint64_t now() const { return now_; }
  uint32_t node() const { return node_->id; }

private:
  RecorderRegistry &registry_ = RecorderRegistry::instance();
  Recorder *recorder_ = nullptr;
  Node *node_ = nullptr;
  uint64_t now_ = 1000;
};

size_t spansOf(const Exemplar &exemplar) {
  size_t count = 0;
  for (const Exemplar::Lane &lane : exemplar.lanes) {
    count += lane.spans.count();
  }
  return count;
}

size_t bytesOf(const Exemplars::Reading &reading) {
  size_t bytes = 0;
  for (const Exemplar &each : reading.exemplars) {
    bytes += each.bytes();
  }
  return bytes;
}

} // namespace

TEST(packed_spans_give_back_their_events) {
  PackedSpans packed(100);
  std::vector<Span> spans = {{90, 110, 7, 0}, {200, 200, 3, 0}, {150, 190, 4'000'000, 0}};
  for (const Span &span : spans) {
    packed.add(span);
  }
  size_t place = 0;
  packed.forEach([&](const Span &span) {
    CHECK_EQ(span.begin_ticks, spans[place].begin_ticks);
    CHECK_EQ(span.end_ticks, spans[place].end_ticks);
    CHECK_EQ(span.node, spans[place].node);
    ++place;
  });
  CHECK_EQ(place, spans.size());
  CHECK_EQ(packed.count(), spans.size());
}

TEST(a_ring_has_the_events_of_a_time_and_says_from_when) {
  SpanRing ring;
  ring.begin(true);
  for (uint64_t i = 0; i < SpanRing::kSpans / 2; ++i) {
    ring.add(10 * i, 10 * i + 5, static_cast<uint32_t>(i % 1000), Span::laneOf(3, 1u << 31));
  }
  SpanRing::Copy copy = ring.copy(1000, 1021);
  CHECK_EQ(copy.known_from, 0u);
  CHECK_EQ(copy.spans.size(), 3u);
  CHECK_EQ(copy.spans[0].begin_ticks, 1000u);
  CHECK_EQ(copy.spans[2].node, 102u);
  CHECK_EQ(Span::deviceOf(copy.spans[2].lane), 3u);
  CHECK_EQ(Span::streamOf(copy.spans[2].lane), 1u << 31);
  for (uint64_t i = SpanRing::kSpans / 2; i < 2 * SpanRing::kSpans; ++i) {
    ring.add(10 * i, 10 * i + 5, 1);
  }
  // All but the oldest, which the writer may be overwriting.
  uint64_t first = SpanRing::kSpans + 1;
  copy = ring.copy(0, UINT64_MAX);
  CHECK_EQ(copy.spans.size(), SpanRing::kSpans - 1);
  CHECK_EQ(copy.spans.front().begin_ticks, 10 * first);
  CHECK_EQ(copy.known_from, 10 * first + 5);
  CHECK_EQ(ring.copy(10 * first + 100, UINT64_MAX).known_from, 0u);
  copy = ring.copy(5, 50); // long gone
  CHECK(copy.spans.empty());
  CHECK_EQ(copy.known_from, 50u);
  ring.begin(false);
  ring.add(1, 2, 3);
  CHECK(ring.copy(0, 10).spans.empty());
}

TEST(rings_have_a_limit_together) {
  std::vector<std::unique_ptr<SpanRing>> rings;
  size_t refused = 0;
  for (size_t i = 0; i < SpanRing::kMostBytes / SpanRing::kBytes + 3; ++i) {
    rings.push_back(std::make_unique<SpanRing>());
    rings.back()->begin(true);
    refused += rings.back()->isRefused();
    rings.back()->add(1, 2, 3);
  }
  CHECK(refused >= 3);
  rings.front()->abandon(); // as in a forked child
  SpanRing in_its_place;
  in_its_place.begin(true);
  CHECK(!in_its_place.isRefused());
  rings.clear();
  SpanRing after;
  after.begin(true);
  CHECK(!after.isRefused());
}

TEST(a_copy_beside_the_writer_has_no_torn_event) {
  SpanRing ring;
  ring.begin(true);
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (uint64_t i = 1; !is_over; ++i) {
      ring.add(i, 2 * i, static_cast<uint32_t>(i & 0xFFFFF), i & 0xFF);
    }
  });
  uint64_t wrapped = 0;
  for (int round = 0; round < 200 || wrapped < 20; ++round) {
    SpanRing::Copy copy = ring.copy(0, UINT64_MAX);
    uint64_t number = copy.spans.empty() ? 0 : copy.spans.front().begin_ticks;
    wrapped += copy.known_from > 0;
    for (const Span &span : copy.spans) {
      CHECK_EQ(span.begin_ticks, number);
      CHECK_EQ(span.end_ticks, 2 * number);
      CHECK_EQ(span.node, static_cast<uint32_t>(number & 0xFFFFF));
      CHECK_EQ(span.lane, number & 0xFF);
      ++number;
    }
  }
  is_over = true;
  writer.join();
}

TEST(the_slowest_steps_are_kept_with_their_events) {
  Run run;
  for (int i = 1; i <= 400; ++i) {
    run.step(i == 300 ? 500 : 3);
  }
  Exemplars::Reading reading = Exemplars::instance().read();
  const Exemplar *slowest = Run::of(reading, 300);
  CHECK(slowest != nullptr);
  if (!slowest) {
    return;
  }
  CHECK(slowest->reasons & kIsSlow);
  CHECK_EQ(spansOf(*slowest), 500u);
  CHECK_EQ(slowest->lanes[0].known_from, 0u);
  CHECK_EQ(slowest->lanes[0].recorder, run.recorder().index());
  size_t random = 0;
  for (const Exemplar &each : reading.exemplars) {
    random += (each.reasons & kIsRandom) != 0;
    CHECK_EQ(spansOf(each), each.step.number == 300 ? 500u : 3u);
  }
  CHECK_EQ(random, StepHistory::kRandom);
}

TEST(the_program_may_mark_steps) {
  Run run;
  for (int i = 1; i <= 100; ++i) {
    run.step(3, /*is_kept=*/i % 10 == 0);
  }
  Exemplars::Reading reading = Exemplars::instance().read();
  for (uint64_t number = 30; number <= 100; number += 10) { // the last eight
    const Exemplar *kept = Run::of(reading, number);
    CHECK(kept && kept->reasons & kIsMarked);
  }
}

TEST(a_step_longer_than_the_ring_keeps_its_end) {
  Run run;
  run.step(1);
  run.step(3 * SpanRing::kSpans);
  Exemplars::Reading reading = Exemplars::instance().read();
  const Exemplar *kept = Run::of(reading, 2);
  CHECK(kept != nullptr);
  if (kept) {
    CHECK_EQ(spansOf(*kept), SpanRing::kSpans - 1);
    CHECK_EQ(kept->lanes[0].known_from, run.now() - SpanRing::kSpans + 1);
  }
}

TEST(exemplars_of_many_steps_take_what_those_of_few_take) {
  Run run;
  for (int i = 0; i < 1000; ++i) {
    run.step(20, false, 1 + static_cast<uint64_t>(i * 7919 % 100));
  }
  Exemplars::Reading few = Exemplars::instance().read();
  for (int i = 0; i < 99'000; ++i) {
    run.step(20, false, 1 + static_cast<uint64_t>(i * 7919 % 100));
  }
  Exemplars::Reading many = Exemplars::instance().read();
  CHECK(many.exemplars.size() <= StepHistory::kSlowest + StepHistory::kRandom);
  CHECK_CLOSE(static_cast<double>(bytesOf(many)), static_cast<double>(bytesOf(few)), 0.1);
  CHECK(many.costs.copies < 1000);
}

TEST(records_of_a_device_may_come_after_the_step) {
  Run run;
  Recorder &device = RecorderRegistry::instance().makeDetached("exemplar test");
  device.spans.begin(true);
  Node *kernel = device.tree.child(device.tree.root(), FrameKind::kKernel, 1, 0);
  run.step(1);
  uint64_t begin = run.now();
  run.step(10);
  Exemplars::Reading early = Exemplars::instance().read();
  CHECK(!Run::of(early, 2)->is_settled);
  CHECK_EQ(spansOf(*Run::of(early, 2)), 10u);
  device.spans.add(begin + 1, begin + 2, kernel->id, Span::laneOf(0, 7));
  device.spans.add(begin + 2, begin + 3, kernel->id, Span::laneOf(0, 8));
  device.spans.add(begin + 900, begin + 901, kernel->id, Span::laneOf(0, 7));
  Exemplars::instance().noteRecords();
  CHECK(Steps::instance().takeDueCopy());
  Exemplars::instance().update();
  Exemplars::Reading late = Exemplars::instance().read();
  const Exemplar *kept = Run::of(late, 2);
  CHECK(kept->is_settled);
  CHECK_EQ(spansOf(*kept), 12u);
  CHECK_EQ(kept->lanes.size(), 3u);
  Exemplars::instance().noteRecords(); // nothing waits for more
  CHECK(!Steps::instance().takeDueCopy());
  device.spans.begin(false);
}

TEST(a_copy_waits_until_its_pause_is_over) {
  Run run;
  run.step(1);
  Steps::instance().pauseCopies(UINT64_MAX);
  Steps::instance().pass({StepSource::kMark, 0, nullptr}, run.now() + 10);
  CHECK(!Steps::instance().takeDueCopy());
  Steps::instance().pauseCopies(0);
  Steps::instance().pass({StepSource::kMark, 0, nullptr}, run.now() + 12);
  CHECK(Steps::instance().takeDueCopy());
}

TEST(a_better_end_of_steps_drops_the_steps_before) {
  Run run;
  for (int i = 0; i < 5; ++i) {
    Steps::instance().pass({StepSource::kModule, 0, nullptr}, 2000 + 10 * static_cast<uint64_t>(i));
  }
  CHECK(!Exemplars::instance().read().exemplars.empty());
  Steps::instance().pass({StepSource::kOptimizer, 0, nullptr}, 3000);
  CHECK(Exemplars::instance().read().exemplars.empty());
}

TEST(without_spans_no_step_is_kept) {
  Run run(/*takes_spans=*/false);
  for (int i = 0; i < 20; ++i) {
    run.step(3);
  }
  CHECK(Exemplars::instance().read().exemplars.empty());
  CHECK(!Steps::instance().takeDueCopy());
}

TEST(a_step_of_many_threads_keeps_its_last_events) {
  Run run;
  Recorder &device = RecorderRegistry::instance().makeDetached("exemplar test");
  device.spans.begin(true);
  run.step(1);
  for (uint64_t i = 0; i < 40'000; ++i) {
    device.spans.add(run.now() + i, run.now() + i + 1, 0, Span::laneOf(0, 1));
  }
  run.step(40'000);
  Exemplars::Reading reading = Exemplars::instance().read();
  const Exemplar *kept = Run::of(reading, 2);
  // Two spans end at each moment.
  CHECK(kept && spansOf(*kept) <= Exemplars::kMostSpans + 1);
  CHECK(kept && spansOf(*kept) >= Exemplars::kMostSpans - 1);
  for (const Exemplar::Lane &lane : kept->lanes) {
    CHECK(lane.known_from > 0);
  }
  device.spans.begin(false);
}

TEST(steps_past_the_limit_of_bytes_are_left_out) {
  Run run;
  constexpr uint64_t kTicks = uint64_t{1} << 40; // several bytes each
  uint64_t now = kTicks;
  Node *other = nullptr;
  for (uint64_t i = 0; i < 300; ++i) {
    other = run.recorder().tree.child(run.recorder().tree.root(), FrameKind::kOperator, 2 + i, 0);
  }
  for (int i = 0; i < 30; ++i) {
    for (uint64_t span = 0; span < SpanRing::kSpans; ++span) {
      run.recorder().spans.add(now, now + kTicks, span % 2 ? other->id : run.node());
      now += kTicks;
    }
    Steps::instance().pass({StepSource::kMark, 0, nullptr}, now, /*is_kept=*/true);
    Exemplars::instance().update();
  }
  Exemplars::Reading reading = Exemplars::instance().read();
  CHECK(bytesOf(reading) <= Exemplars::kMostBytes);
  CHECK(bytesOf(reading) > Exemplars::kMostBytes / 2);
  CHECK(reading.costs.refused > 0);
}
