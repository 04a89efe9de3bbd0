// Communication that ran alone, against a painted time line; names of kernels that communicate.
#include <algorithm>
#include <random>
#include <vector>

#include "core/collective_launches.h"
#include "gpu/communication.h"
#include "gpu/exposure.h"
#include "gpu/idle.h"
#include "tests/check.h"

using namespace deepcontext;
using namespace deepcontext::gpu;

namespace {

constexpr uint32_t kPaths = 5;

/// Work of three streams, in no order: a compute stream, one that communicates, one of copies and
/// computing.
std::vector<BusyInterval> madeWork(std::mt19937 &random, std::vector<MetricRow> &rows) {
  std::vector<BusyInterval> made;
  uint64_t now[] = {1000, 1200, 1500};
  for (uint32_t i = 0; i < 300; ++i) {
    auto stream = static_cast<uint32_t>(random() % 3);
    bool is_copy = stream == 2 && random() % 2 == 0;
    uint64_t start = now[stream] + random() % 20;
    BusyInterval interval = {start, start + 1 + random() % 40, i};
    if (stream == 1) {
      interval.work = Work::kCommunication;
      interval.exposed = &rows[random() % kPaths];
    } else if (is_copy) {
      interval.work = Work::kCopy;
    }
    now[stream] = interval.end_ns;
    made.push_back(interval);
  }
  return made;
}

/// Nanoseconds in which something communicated and nothing computed.
uint64_t paintedExposure(const std::vector<BusyInterval> &work) {
  uint64_t last = 0, exposed = 0;
  for (const BusyInterval &each : work) {
    last = std::max(last, each.end_ns);
  }
  for (uint64_t now = 0; now < last; ++now) {
    bool communicates = false, computes = false;
    for (const BusyInterval &each : work) {
      bool is_open = each.start_ns <= now && now < each.end_ns;
      communicates |= is_open && each.work == Work::kCommunication;
      computes |= is_open && each.work == Work::kCompute;
    }
    exposed += communicates && !computes;
  }
  return exposed;
}

uint64_t totalOf(const std::vector<MetricRow> &rows) {
  uint64_t total = 0;
  for (const MetricRow &row : rows) {
    total += row.read().total;
  }
  return total;
}

std::vector<std::pair<uint32_t, DeviceWork>> g_delivered;

} // namespace

TEST(exposed_time_is_that_of_a_painted_line) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<MetricRow> rows(kPaths);
    std::vector<BusyInterval> work = madeWork(random, rows);
    IdleTracker tracker([](const IdleGap &) {});
    for (const BusyInterval &each : work) {
      tracker.add(0, 0, each);
    }
    tracker.settle(true);
    CHECK_EQ(totalOf(rows), paintedExposure(work));
  }
}

TEST(communications_that_are_alone_together_share_the_time) {
  std::vector<MetricRow> rows(2);
  Exposure exposure;
  exposure.add({0, 100, 1, Work::kCommunication, 0, &rows[0]});
  exposure.add({50, 150, 2, Work::kCommunication, 0, &rows[1]});
  exposure.add({140, 200, 3});
  exposure.finish();
  CHECK_EQ(rows[0].read().total, 75u);       // 50 alone, 50 shared
  CHECK_EQ(rows[1].read().total, 25u + 40u); // shared, then alone until something computes
}

TEST(a_collective_is_told_of_its_kernels) {
  auto &launches = CollectiveLaunches::instance();
  launches.clear();
  launches.setSink(
      [](uint32_t order, const DeviceWork &work) { g_delivered.emplace_back(order, work); });
  launches.note(70'000, 5);
  CHECK_EQ(launches.find(70'000), 6u);
  CHECK_EQ(launches.find(70'000 + 65'536), 0u); // another launch of the same slot
  CHECK_EQ(launches.find(1), 0u);
  MetricRow row;
  Exposure exposure;
  exposure.add({0, 30, 69'999});
  exposure.add({10, 50, 70'000, Work::kCommunication, launches.find(70'000), &row});
  exposure.finish();
  CHECK_EQ(g_delivered.size(), 1u);
  CHECK_EQ(g_delivered[0].first, 5u);
  CHECK_EQ(g_delivered[0].second.start_ns, 10u);
  CHECK_EQ(g_delivered[0].second.end_ns, 50u);
  CHECK_EQ(g_delivered[0].second.exposed_ns, 20u);
  launches.clear();
  CHECK_EQ(launches.find(70'000), 0u);
}

TEST(more_streams_than_are_followed_lose_nothing_but_exactness) {
  std::vector<MetricRow> rows(1);
  Exposure exposure;
  for (uint64_t i = 0; i < 200; ++i) {
    exposure.add({i, 1000 + i, static_cast<uint32_t>(i), Work::kCommunication, 0, &rows[0]});
  }
  exposure.finish();
  CHECK_EQ(rows[0].read().count, 200u);
  CHECK(totalOf(rows) <= 1200u);
  CHECK_EQ(exposure.crowded(), 200u - Exposure::kMostOpen); // each closed one of these too early
}

TEST(kernels_that_communicate_are_known_by_name) {
  for (const char *name :
       {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_AllReduce_RING_LL_Sum_float", "ncclDevKernel_Generic_4",
        "void vllm::cross_device_reduce_1stage<float, 2>(...)", "nvshmemi_transfer"}) {
    CHECK(isCommunicationKernel(name));
  }
  for (const char *name : {"ampere_sgemm_128x64_nn", "void at::native::reduce_kernel<...>", ""}) {
    CHECK(!isCommunicationKernel(name));
  }
}
