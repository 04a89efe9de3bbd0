// Memory that frameworks allocate, as Python sees it (typed in _native.pyi).
#include <array>

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "bindings/node_paths.h"
#include "bindings/text.h"
#include "core/allocation_ledger.h"
#include "core/step_clock.h"
#include "core/steps.h"
#include "core/thread.h"
#include "torch/memory.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

nb::dict poolDict(const MemoryPool &pool, const RoleBytes &roles, const TickClock &clock) {
  nb::list role_bytes;
  for (uint64_t bytes : roles) {
    role_bytes.append(bytes);
  }
  nb::dict values;
  values["name"] = pool.name;
  values["is_device"] = pool.is_device;
  values["allocations"] = pool.allocations;
  values["alloc_bytes"] = pool.allocated_bytes;
  values["live_bytes"] = pool.live_bytes;
  values["peak_bytes"] = pool.peak_bytes;
  values["peak_after_ns"] = clock.nsSinceStart(pool.peak_ticks);
  values["peak_step"] = pool.peak_step;
  values["growth_bytes"] = pool.growth.increase();
  values["reserved_peak_bytes"] = pool.reserved_peak_bytes;
  values["peak_role_bytes"] = role_bytes;
  return values;
}

nb::dict summary() {
  AllocationLedger &ledger = AllocationLedger::instance();
  AllocationLedger::Summary found = ledger.summary();
  nb::list pools;
  for (size_t i = 0; i < found.pools.size(); ++i) {
    pools.append(
        poolDict(found.pools[i], found.peak_roles[i], RecorderRegistry::instance().clock()));
  }
  nb::dict values;
  values["pools"] = pools;
  values["steps"] = found.steps;
  constexpr std::array<const char *, 3> kStepKinds = {"call", "optimizer", "mark"};
  values["step_kind"] = kStepKinds[static_cast<size_t>(found.step_kind)];
  values["growth_since_step"] = found.growth_since_step;
  values["untracked"] = ledger.counters.untracked.load(std::memory_order_relaxed);
  values["untracked_bytes"] = ledger.counters.untracked_bytes.load(std::memory_order_relaxed);
  values["frees_missed"] = ledger.counters.replaced.load(std::memory_order_relaxed);
  return values;
}

/// (path, allocations, bytes) of each context that made some of these allocations, and how many of
/// all its allocations live, and were made.
nb::list places(const std::vector<uintptr_t> &addresses) {
  RecorderRegistry &registry = RecorderRegistry::instance();
  std::vector<Recorder *> recorders = registry.active();
  nb::list rows;
  for (const AllocationLedger::Place &place : AllocationLedger::instance().placesOf(addresses)) {
    const Recorder *recorder = registry.at(place.recorder);
    if (recorder && place.node < recorder->tree.size()) {
      nb::list path = pathAsList(*recorder->tree.node(place.node), recorders);
      rows.append(
          nb::make_tuple(path, place.blocks, place.size_bytes, place.all_living, place.all_made));
    }
  }
  return rows;
}

} // namespace

void bindMemory(nb::module_ &module) {
  module.def("memory_start", torch::startMemory);
  module.def("memory_stop", torch::stopMemory);
  module.def(
      "mark_step",
      [](bool is_kept) {
        StepClock::tick();
        Steps::instance().pass({StepSource::kMark, static_cast<uint32_t>(kernelThread()), nullptr},
                               ticks(), is_kept);
        AllocationLedger::instance().markStep();
      },
      nb::arg("is_kept") = false);
  module.def("memory_set_role", [](const std::vector<uintptr_t> &addresses, uint8_t role) {
    if (role >= kTensorRoles) {
      throw nb::value_error("there is no such role");
    }
    AllocationLedger::instance().setRole(addresses, static_cast<TensorRole>(role));
  });
  module.def("memory_summary", summary);
  module.def("memory_places", places);
  module.def("torch_find_host_allocator", [] { return reasonOf(torch::findHostAllocator); });
  module.def("torch_begin_host_check", torch::beginHostCheck);
  module.def("torch_finish_host_check", [](uintptr_t address, uint64_t bytes) {
    return reasonOf([&](auto *reason) { return torch::finishHostCheck(address, bytes, reason); });
  });
  module.def("torch_watch_devices", torch::watchDevices);
  module.def("torch_is_memory_watched", torch::isMemoryWatched);
}

} // namespace deepcontext
