// The vendor-neutral parts one by one: correlation ring, idle tracker, names, buffers, deadlines.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <malloc.h>
#include <map>
#include <new>
#include <random>
#include <stdexcept>
#include <thread>

#include "core/interner.h"
#include "gpu/answered_launches.h"
#include "gpu/buffer_queue.h"
#include "gpu/correlation.h"
#include "gpu/cupti/call_gate.h"
#include "gpu/cupti/calls.h"
#include "gpu/cupti/moved_nodes.h"
#include "gpu/deadline.h"
#include "gpu/hip/calls.h"
#include "gpu/hip/runtime.h"
#include "gpu/idle.h"
#include "gpu/kernel_names.h"
#include "gpu/silent_graphs.h"
#include "tests/check.h"

using namespace deepcontext::gpu;
using deepcontext::Interner;

TEST(call_sites_are_found_until_the_ring_has_gone_round) {
  CorrelationTable table(1024);
  CallSite site;
  CHECK(!table.find(0, &site));
  for (uint32_t id = 0; id < 1024; ++id) {
    CHECK(table.set(id, id % 7, id + 1, id * 10));
  }
  for (uint32_t id = 0; id < 1024; ++id) {
    CHECK(table.find(id, &site));
    CHECK_EQ(site.recorder, id % 7);
    CHECK_EQ(site.node, id + 1);
    CHECK_EQ(site.ticks, id * 10u);
  }
  table.set(1024, 1, 2, 3);
  CHECK(!table.find(0, &site));
  CHECK(table.find(1024, &site));
  table.clear();
  CHECK(!table.find(1024, &site));
}

TEST(ids_may_wrap_and_recorders_may_not_fit) {
  CorrelationTable table(1024);
  CallSite site;
  table.set(UINT32_MAX, 1, 10, 0);
  table.set(0, 2, 20, 0);
  CHECK(table.find(UINT32_MAX, &site) && site.node == 10);
  CHECK(table.find(0, &site) && site.node == 20);
  CHECK(!table.set(5, CorrelationTable::kMaxRecorders, 1, 0));
  CHECK(!table.find(5, &site));
}

TEST(time_stamps_are_compared_across_their_wrap) {
  uint64_t last = (1ull << CorrelationTable::kTickBits) - 1;
  CHECK_EQ(CorrelationTable::ticksBetween(last, 4), 5);
  CHECK_EQ(CorrelationTable::ticksBetween(4, last), -5);
}

TEST(a_launch_is_answered_by_its_first_record) {
  AnsweredLaunches answered;
  for (uint32_t id : {0u, 1u, UINT32_MAX, UINT32_MAX - CorrelationTable::kDefaultSlots}) {
    CHECK(answered.note(id));
    CHECK(!answered.note(id));
  }
  CHECK(answered.note(1 + CorrelationTable::kDefaultSlots)); // another id of the same slot
  answered.clear();
  CHECK(answered.note(0));
}

TEST(a_graph_is_silent_only_if_all_of_it_was_seen) {
  SilentGraphs graphs;
  int graph = 0, unseen, other, executable;
  graphs.graphCreated(&graph);
  graphs.nodeAnnounced(&graph, false);
  graphs.nodeCreated(&graph);
  graphs.instantiated(&executable, &graph);
  CHECK(graphs.any());
  uint32_t number = graphs.noteReplay(&executable);
  CHECK(number != 0);
  CHECK_EQ(graphs.noteReplay(&executable), number);
  CHECK_EQ(graphs.noteReplay(&other), 0u);

  graphs.instantiated(&executable, &unseen); // another graph's, at the same address
  CHECK_EQ(graphs.noteReplay(&executable), 0u);
  graphs.nodeCreated(&graph); // not announced
  graphs.instantiated(&executable, &graph);
  CHECK_EQ(graphs.noteReplay(&executable), 0u);
  graphs.graphCreated(&graph); // another one at the same address
  graphs.nodeAnnounced(&graph, true);
  graphs.instantiated(&executable, &graph);
  CHECK_EQ(graphs.noteReplay(&executable), 0u);
  CHECK_EQ(graphs.silentReplays(), 2u);
}

TEST(replays_of_a_silent_graph_count_once_one_has_left_a_record) {
  SilentGraphs graphs;
  int graph = 0, executables[2];
  graphs.graphCreated(&graph);
  for (int &executable : executables) {
    graphs.instantiated(&executable, &graph);
  }
  uint32_t first = graphs.noteReplay(&executables[0]);
  graphs.noteReplay(&executables[0]);
  CHECK(graphs.noteReplay(&executables[1]) != first);
  graphs.executableDestroyed(&executables[0]); // its records may still come
  graphs.noteRecord(first);
  graphs.noteRecord(first);
  CHECK_EQ(graphs.revealedReplays(), 2u);
  CHECK_EQ(graphs.silentReplays(), 1u);
  CHECK_EQ(graphs.noteReplay(&executables[0]), 0u);
  graphs.clear();
  CHECK_EQ(graphs.revealedReplays() + graphs.silentReplays(), 0u);
}

TEST(graphs_past_the_last_number_are_not_silent) {
  SilentGraphs graphs;
  int graph;
  std::vector<char> executables(CorrelationTable::kSilentGraphs);
  graphs.graphCreated(&graph);
  for (char &executable : executables) {
    graphs.instantiated(&executable, &graph);
  }
  CHECK_EQ(graphs.noteReplay(&executables[executables.size() - 2]),
           CorrelationTable::kSilentGraphs - 1);
  CHECK_EQ(graphs.noteReplay(&executables.back()), 0u);
}

TEST(a_call_site_keeps_the_number_of_a_silent_graph) {
  CorrelationTable table(64);
  CallSite site;
  uint32_t most = CorrelationTable::kSilentGraphs - 1;
  uint32_t node = (1u << CorrelationTable::kNodeBits) - 1;
  table.set(7, 3, node, 5, most);
  CHECK(table.find(7, &site));
  CHECK_EQ(site.node, node);
  CHECK_EQ(site.silent_graph, most);
  table.set(7, 3, node, 5);
  CHECK(table.find(7, &site) && site.silent_graph == 0);
}

TEST(a_reader_never_sees_half_a_call) {
  CorrelationTable table(64); // small, so that writers overwrite what readers look at
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (uint32_t id = 0; id < 200'000; ++id) {
      table.set(id, id % 100, id % 1000, id);
    }
    is_over = true;
  });
  while (!is_over) {
    for (uint32_t id = 0; id < 200'000; id += 997) {
      CallSite site;
      if (table.find(id, &site)) {
        CHECK(site.recorder == id % 100 && site.node == id % 1000 && site.ticks == id);
      }
    }
  }
  writer.join();
  CallSite site;
  CHECK(table.find(199'999, &site));
}

TEST(idle_time_is_the_same_in_any_order) {
  std::mt19937 random(5);
  std::vector<BusyInterval> intervals;
  uint64_t now = 1000, idle = 0;
  for (uint32_t i = 0; i < 100'000; ++i) {
    uint64_t gap = random() % 4 == 0 ? random() % 50 : 0;
    uint64_t length = 1 + random() % 100;
    idle += i > 0 ? gap : 0;
    now += gap;
    intervals.push_back({now, now + length, i});
    now += length;
  }
  for (size_t reach : {size_t{1}, size_t{1000}, IdleTracker::kWindow / 2}) {
    std::vector<BusyInterval> shuffled = intervals;
    for (size_t begin = 0; begin < shuffled.size(); begin += reach) {
      size_t end = std::min(begin + reach, shuffled.size());
      std::shuffle(shuffled.begin() + static_cast<std::ptrdiff_t>(begin),
                   shuffled.begin() + static_cast<std::ptrdiff_t>(end), random);
    }
    uint64_t reported = 0;
    IdleTracker tracker([&](const IdleGap &gap) { reported += gap.end_ns - gap.start_ns; });
    for (size_t i = 0; i < shuffled.size(); ++i) {
      tracker.add(0, static_cast<uint32_t>(i % 3), shuffled[i]);
      if (i % 5000 == 0) {
        tracker.settle(false);
      }
    }
    tracker.settle(true);
    DeviceTotals totals = tracker.totals()[0];
    CHECK_EQ(totals.idle_ns, idle);
    CHECK_EQ(reported, idle);
    CHECK_EQ(totals.busy_ns + totals.idle_ns, totals.last_ns - totals.first_ns);
    CHECK_EQ(totals.late_ns, 0u);
  }
}

TEST(work_that_comes_too_late_is_counted_as_such) {
  IdleTracker tracker([](const IdleGap &) {});
  tracker.add(0, 0, {100, 200, 1});
  tracker.add(0, 0, {1000, 1100, 2});
  tracker.settle(true);
  tracker.add(0, 0, {300, 400, 3});
  tracker.settle(true);
  DeviceTotals totals = tracker.totals()[0];
  CHECK_EQ(totals.idle_ns, 800u);
  CHECK_EQ(totals.late_ns, 100u);
}

TEST(devices_and_overlapping_streams_are_kept_apart) {
  IdleTracker tracker([](const IdleGap &) {});
  tracker.add(0, 1, {0, 100, 1});
  tracker.add(0, 2, {50, 150, 2});
  tracker.add(1, 1, {0, 10, 3});
  tracker.settle(true);
  auto totals = tracker.totals();
  CHECK_EQ(totals[0].busy_ns, 150u);
  CHECK_EQ(totals[0].stream_busy_ns[1], 100u);
  CHECK_EQ(totals[0].stream_busy_ns[2], 100u);
  CHECK_EQ(totals[1].busy_ns, 10u);
}

TEST(names_are_looked_at_again_when_their_address_may_be_reused) {
  KernelNames names;
  char name[] = "first";
  uint32_t first = names.lookup(name);
  CHECK_EQ(Interner::instance().text(first), "first");
  name[0] = 'b';
  CHECK_EQ(names.lookup(name), first); // within one buffer an address keeps its meaning
  names.age();
  CHECK_EQ(Interner::instance().text(names.lookup(name)), "birst");
  CHECK(!Interner::instance().text(names.lookup(nullptr)).empty());
  std::vector<std::string> many;
  for (int i = 0; i < 5000; ++i) {
    many.push_back("kernel" + std::to_string(i));
  }
  for (int round = 0; round < 2; ++round) {
    for (const std::string &text : many) {
      CHECK_EQ(Interner::instance().text(names.lookup(text.c_str())), text);
    }
    names.age();
  }
}

TEST(driver_functions_are_classified_by_name) {
  using deepcontext::gpu::cupti::classify;
  for (const char *name : {"cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx",
                           "cuLaunchCooperativeKernel", "cuLaunch", "cuLaunchGridAsync",
                           "cuGraphLaunch_ptsz", "cuMemsetD32Async", "cuMemcpyHtoDAsync_v2"}) {
    CHECK(classify(name).is_launch);
    CHECK(!classify(name).is_waiting);
  }
  CHECK(classify("cuMemcpyDtoH_v2").is_launch && classify("cuMemcpyDtoH_v2").is_waiting);
  CHECK(classify("cuGraphLaunch_ptsz").is_replay && !classify("cuLaunchKernel").is_replay);
  CHECK(classify("cuStreamSynchronize_ptsz").is_waiting);
  CHECK(!classify("cuStreamSynchronize").is_launch);
  CHECK(classify("cuMemcpyPeerAsync").record_kind == deepcontext::abi::cupti::kKindMemcpyPeer);
  CHECK(classify("cuMemcpyHtoDAsync_v2").record_kind == deepcontext::abi::cupti::kKindMemcpy);
  CHECK(classify("cuMemsetD8_v2").record_kind == deepcontext::abi::cupti::kKindMemset);
  CHECK(classify("cuLaunchKernel").record_kind == 0);
  CHECK(classify("cuStreamBeginCapture_v2_ptsz").captures == 1);
  CHECK(classify("cuStreamBeginCaptureToGraph").captures == 1);
  CHECK(classify("cuStreamEndCapture_ptsz").captures == -1);
  CHECK(classify("cuStreamSynchronize").captures == 0);
  for (const char *name : {"cuLaunchHostFunc", "cuLaunchHostFunc_ptsz", "cuMemAlloc_v2",
                           "cuGraphInstantiate", "cuStreamBeginCapture_v2"}) {
    CHECK(!classify(name).is_launch && !classify(name).is_waiting);
  }
}

TEST(hip_functions_are_classified_by_name) {
  for (const char *name :
       {"hipLaunchKernel", "hipLaunchKernel_spt", "hipExtLaunchKernel", "hipModuleLaunchKernel",
        "hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel", "hipLaunchCooperativeKernel",
        "hipModuleLaunchCooperativeKernel", "hipDrvLaunchKernelEx"}) {
    CHECK(classifyHip(name) == HipFunction::kLaunch);
  }
  CHECK(classifyHip("hipMemcpyDtoH") == HipFunction::kBlockingCopy);
  CHECK(classifyHip("hipMemcpyWithStream") == HipFunction::kBlockingCopy);
  CHECK(classifyHip("hipMemcpyDtoHAsync") == HipFunction::kAsyncCopy);
  CHECK(classifyHip("hipMemsetD32Async") == HipFunction::kMemset);
  CHECK(classifyHip("hipMemset") == HipFunction::kMemset);
  CHECK(classifyHip("hipStreamSynchronize_spt") == HipFunction::kWait);
  CHECK(classifyHip("hipGraphLaunch_spt") == HipFunction::kGraphLaunch);
  CHECK(classifyHip("hipGraphInstantiateWithParams") == HipFunction::kInstantiate);
  CHECK(classifyHip("hipGraphAddKernelNode") == HipFunction::kAddNode);
  for (const char *name :
       {"hipLaunchHostFunc", "hipLaunchHostFunc_spt", "hipMalloc", "hipStreamQuery",
        "hipGraphAddMemcpyNode", "hipModuleLoadData", "hipStreamIsCapturing"}) {
    CHECK(classifyHip(name) == HipFunction::kOther);
  }
}

TEST(gpus_are_numbered_as_the_variables_show_them) {
  const std::vector<HipGpu> gpus = {{10, 0xA0}, {11, 0xA1}, {12, 0xA2}, {13, 0xA3}};
  using Handles = std::vector<uint64_t>;
  auto order = [&gpus](const char *rocr, const char *hip, const char *ordinal) {
    return hipOrder(gpus, {rocr, hip, ordinal});
  };
  CHECK(order("", "", "") == (Handles{10, 11, 12, 13}));
  // What is hidden comes after what is shown.
  CHECK(order("", "2", "") == (Handles{12, 10, 11, 13}));
  CHECK(order("2, 0", "", "") == (Handles{12, 10, 11, 13}));
  CHECK(order("GPU-00000000000000a3,GPU-A1", "", "") == (Handles{13, 11, 10, 12}));
  // HIP counts what ROCr shows.
  CHECK(order("3,1,0", "1,0", "") == (Handles{11, 13, 10, 12}));
  CHECK(order("", "", "1") == (Handles{11, 10, 12, 13}));
  CHECK(order("", "2", "1") == (Handles{12, 10, 11, 13}));
  // A list ends at what names no GPU, and names each but once.
  CHECK(order("", "1,-1,2", "") == (Handles{11, 10, 12, 13}));
  CHECK(order("", "3,3,7,0", "") == (Handles{13, 10, 11, 12}));
  CHECK(order("", "GPU-,1", "") == (Handles{10, 11, 12, 13}));
  CHECK(order("", "99999999999999999999", "") == (Handles{10, 11, 12, 13}));
}

TEST(buffers_are_bounded_read_and_reused) {
  BufferQueue queue;
  std::atomic<uint64_t> read{0};
  queue.configure(1000, 4096, [&](const FilledBuffer &buffer) {
    read += buffer.valid_bytes;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  CHECK_EQ(queue.bufferBytes(), 1024u);
  std::vector<uint8_t *> buffers;
  for (int i = 0; i < 4; ++i) {
    buffers.push_back(queue.take(false));
    CHECK(buffers.back() != nullptr);
  }
  CHECK(queue.take(false) == nullptr);
  uint8_t *beyond = queue.take(true);
  CHECK(beyond != nullptr);
  buffers.push_back(beyond);
  for (uint8_t *buffer : buffers) {
    queue.put({buffer, 1024, 10});
  }
  CHECK(queue.waitUntilRead(10));
  CHECK_EQ(read.load(), 50u);
  uint8_t *again = queue.take(false);
  CHECK(again != nullptr);
  queue.discard({again, 1024, 0});
  queue.beforeFork();
  queue.afterFork();
  uint8_t *after = queue.take(false);
  queue.put({after, 1024, 7});
  queue.stop();
  CHECK_EQ(read.load(), 57u);
}

TEST(a_buffer_of_an_earlier_session_is_not_handed_out_as_a_larger_one) {
  BufferQueue queue;
  queue.configure(1024, 1 << 20, [](const FilledBuffer &) {});
  uint8_t *kept = queue.take(false); // by the vendor, over the end of the session
  queue.stop();
  queue.configure(4096, 1 << 20, [](const FilledBuffer &) {});
  queue.put({kept, 1024, 10});
  CHECK(queue.waitUntilRead(10));
  uint8_t *fresh = queue.take(false);
  CHECK(malloc_usable_size(fresh) >= queue.bufferBytes());
  queue.discard({fresh, queue.bufferBytes(), 0});
  queue.stop();
}

TEST(nodes_that_stay_behind_a_destroyed_graph_are_asked_again) {
  using cupti::MovedNodes;
  MovedNodes nodes;
  int graph, other, handles[3];
  std::map<void *, uint64_t> ids{{&handles[0], 70}, {&handles[1], 8}, {&handles[2], 90}};
  nodes.cloned(&graph, &handles[0], 7);
  nodes.cloned(&graph, &handles[1], 8);
  nodes.cloned(&graph, &handles[2], 9);
  nodes.nodeDestroyed(&graph, &handles[2]); // its handle is not to be asked
  nodes.nodeDestroyed(&other, &handles[0]);
  std::vector<std::pair<uint64_t, uint64_t>> moved;
  auto destroy = [&](void *gone) {
    nodes.graphDestroyed(
        gone, [&](void *node) { return ids.at(node); },
        [&](uint64_t from, uint64_t to) { moved.emplace_back(from, to); });
  };
  destroy(&other);
  CHECK(moved.empty());
  destroy(&graph);
  CHECK_EQ(moved.size(), 1u);
  CHECK(moved[0] == std::make_pair(uint64_t{7}, uint64_t{70}));
  destroy(&graph); // is not known any more
  CHECK_EQ(moved.size(), 1u);
}

TEST(functions_that_say_how_much_they_copy) {
  for (const char *name : {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoH_v2_ptds", "cuMemcpyAsync_ptsz",
                           "cuMemcpy", "cuMemsetD8Async", "cuMemsetD32_v2"}) {
    CHECK(cupti::classify(name).is_sized);
  }
  for (const char *name :
       {"cuMemcpyHtoD", "cuMemcpy2DAsync_v2", "cuMemcpyHtoA_v2", "cuMemsetD2D8_v2",
        "cuMemcpyPeerAsync", "cuMemsetD8", "cuLaunchKernel"}) {
    CHECK(!cupti::classify(name).is_sized);
  }
}

TEST(a_gate_is_passed_by_calls_or_closed) {
  cupti::CallGate gate;
  gate.reset();
  std::atomic<int> inside{0}, overlaps{0};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_over.load()) {
        gate.enter();
        gate.enter(); // a call inside a call
        inside.fetch_add(1);
        inside.fetch_sub(1);
        gate.leave();
        gate.leave();
      }
    });
  }
  int closed = 0;
  for (int i = 0; i < 200; ++i) {
    cupti::CallGate::Closed closing(gate, std::chrono::milliseconds(500));
    closed += closing ? 1 : 0;
    for (int j = 0; closing && j < 100; ++j) {
      overlaps += inside.load() != 0;
    }
  }
  is_over = true;
  for (std::thread &thread : threads) {
    thread.join();
  }
  CHECK(closed > 0);
  CHECK_EQ(overlaps.load(), 0);
}

TEST(a_gate_with_another_thread_inside_stays_open_and_forgets_it_in_the_next_session) {
  cupti::CallGate gate;
  gate.reset();
  gate.enter();
  CHECK(cupti::CallGate::Closed(gate)); // the calling thread itself is no other
  std::thread([&] { CHECK(!cupti::CallGate::Closed(gate, std::chrono::milliseconds(20))); }).join();
  gate.reset();
  gate.leave(); // of a call that began in the session before
  std::thread([&] { CHECK(cupti::CallGate::Closed(gate)); }).join();
}

TEST(work_that_throws_ends_its_wait) {
  // Nothing waits for the deadline, which is longer than ctest's.
  CHECK(runWithDeadline([] { throw std::runtime_error("planted"); }, 3600));
  CHECK(runWithDeadline([] {}, 3600));
}

TEST(a_reader_that_throws_costs_its_buffer_only) {
  BufferQueue queue;
  std::atomic<int> seen{0};
  queue.configure(1024, 1 << 20, [&](const FilledBuffer &buffer) {
    ++seen;
    if (buffer.valid_bytes % 2 == 1) {
      throw std::bad_alloc();
    }
  });
  for (size_t turn = 0; turn < 6; ++turn) {
    queue.put({queue.take(false), queue.bufferBytes(), turn});
  }
  CHECK(queue.waitUntilRead(3600)); // longer than ctest's
  queue.beforeFork();
  queue.afterFork();
  queue.put({queue.take(false), queue.bufferBytes(), 1});
  queue.stop();
  CHECK_EQ(seen.load(), 7);
}

TEST(a_call_that_hangs_is_left_behind) {
  CHECK(runWithDeadline([] {}, 5));
  CHECK(!isInternalThread());
  std::atomic<bool> was_own{false};
  CHECK(runWithDeadline([&] { was_own = isInternalThread(); }, 5));
  CHECK(was_own.load());
  CHECK(
      !runWithDeadline([] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }, 0.05));
  std::this_thread::sleep_for(std::chrono::milliseconds(400)); // let it end before the process does
}
