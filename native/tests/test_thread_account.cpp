#include "sampling/thread_account.h"

#include <random>

#include "tests/check.h"

using namespace deepcontext;

namespace {

constexpr uint64_t kMs = 1'000'000;

uint64_t sum(ChargedTime time) {
  return time.cpu_ns + time.wait_ns;
}

} // namespace

TEST(running_time_is_charged_where_the_thread_runs_and_waiting_where_it_waits) {
  ThreadAccount account({0, 0, 0});
  ChargedTime first = account.charge(SampleKind::kRunning, {10 * kMs, 0, 7 * kMs});
  CHECK_EQ(first.cpu_ns, 7 * kMs);
  CHECK_EQ(first.wait_ns, 0u); // 3 ms are owed until it is found waiting
  ChargedTime second = account.charge(SampleKind::kWaiting, {20 * kMs, 0, 9 * kMs});
  CHECK_EQ(second.cpu_ns, 0u);
  CHECK_EQ(second.wait_ns, (3 + 8) * kMs);
  ChargedTime third = account.charge(SampleKind::kRunning, {30 * kMs, 0, 19 * kMs});
  CHECK_EQ(third.cpu_ns, (2 + 10) * kMs);
  CHECK_EQ(third.wait_ns, 0u);
}

TEST(time_in_operators_is_not_charged) {
  ThreadAccount account({0, 0, 0});
  CHECK_EQ(sum(account.charge(SampleKind::kInOperator, {10 * kMs, 6 * kMs, 10 * kMs})), 0u);
  ChargedTime time = account.charge(SampleKind::kRunning, {20 * kMs, 14 * kMs, 20 * kMs});
  CHECK_EQ(time.cpu_ns, 6 * kMs); // 4 of the first interval, 2 of the second
  CHECK_EQ(sum(account.settle()), 0u);
}

TEST(an_operator_that_waits_does_not_make_the_rest_wait) {
  // 10 ms, of which 6 in an operator that ran for 1 and waited for 5.
  ThreadAccount account({0, 0, 0});
  ChargedTime time = account.charge(SampleKind::kRunning, {10 * kMs, 6 * kMs, 5 * kMs});
  CHECK_EQ(time.cpu_ns, 4 * kMs);
  ThreadAccount other({0, 0, 0});
  ChargedTime waited = other.charge(SampleKind::kWaiting, {10 * kMs, 6 * kMs, 6 * kMs});
  CHECK_EQ(waited.wait_ns, 4 * kMs);
}

TEST(an_operator_that_ends_between_two_readings_is_made_up_for) {
  ThreadAccount account({0, 0, 0});
  ChargedTime first = account.charge(SampleKind::kRunning, {10 * kMs, 0, 10 * kMs});
  // All of 25 ms were the operator's, of which 10 have been charged already.
  ChargedTime second = account.charge(SampleKind::kRunning, {40 * kMs, 25 * kMs, 40 * kMs});
  CHECK_EQ(sum(first) + sum(second) + sum(account.settle()), 15 * kMs);
}

TEST(a_thread_that_is_never_found_waiting_owes_little) {
  ThreadAccount account({0, 0, 0});
  uint64_t charged = 0;
  for (uint64_t i = 1; i <= 1000; ++i) {
    charged += account.charge(SampleKind::kRunning, {i * 10 * kMs, 0, i * 9 * kMs}).wait_ns;
  }
  CHECK_EQ(charged >= 890 * kMs, true);
}

TEST(where_processors_are_scarce_a_ready_place_stands_for_a_running_one) {
  ThreadAccount account({0, 0, 0});
  uint64_t cpu = 0;
  uint64_t wait = 0;
  for (uint64_t i = 1; i <= 100; ++i) {
    ChargedTime time = account.charge(SampleKind::kReady, {i * 10 * kMs, 0, i * 5 * kMs});
    cpu += time.cpu_ns;
    wait += time.wait_ns;
  }
  CHECK_EQ(cpu, 500 * kMs);
  CHECK_EQ(wait, 500 * kMs);
}

TEST(every_nanosecond_is_charged_once) {
  std::mt19937_64 random(20261121);
  for (int turn = 0; turn < 200; ++turn) {
    ThreadClocks now{0, 0, 0};
    ThreadAccount account(now);
    uint64_t charged = 0;
    for (int sample = 0; sample < 100; ++sample) {
      uint64_t elapsed = random() % (20 * kMs);
      now.wall_ns += elapsed;
      now.operator_ns += elapsed ? random() % elapsed : 0;
      now.cpu_ns += elapsed ? random() % elapsed : 0;
      charged += sum(account.charge(static_cast<SampleKind>(random() % 4), now));
    }
    charged += sum(account.settle());
    CHECK_EQ(charged, now.wall_ns - now.operator_ns);
  }
}
