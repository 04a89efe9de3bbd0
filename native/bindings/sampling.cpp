// The CPU sampler, as Python sees it (typed in _native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "bindings/text.h"
#include "core/clock.h"
#include "sampling/sampler.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

nb::dict samplerCounts() {
  const SamplerCounts &counts = Sampler::instance().counts();
  nb::dict values;
  values["rounds"] = counts.rounds.load(std::memory_order_relaxed);
  values["running"] = counts.running.load(std::memory_order_relaxed);
  values["waiting"] = counts.waiting.load(std::memory_order_relaxed);
  values["lost"] = counts.lost.load(std::memory_order_relaxed);
  values["cut"] = counts.cut.load(std::memory_order_relaxed);
  values["unanswered"] = counts.unanswered.load(std::memory_order_relaxed);
  values["astray"] = counts.astray.load(std::memory_order_relaxed);
  values["waits_ended"] = counts.waits_ended.load(std::memory_order_relaxed);
  values["not_inside"] = counts.not_inside.load(std::memory_order_relaxed);
  values["threads"] = counts.threads.load(std::memory_order_relaxed);
  values["threads_refused"] = counts.threads_refused.load(std::memory_order_relaxed);
  values["internal_cpu_ns"] = counts.internal_cpu_ns.load(std::memory_order_relaxed);
  return values;
}

/// (name, error, whether only user-mode code is counted) of each event.
nb::list toList(const std::vector<PerfAnswer> &answers) {
  nb::list list;
  for (const PerfAnswer &answer : answers) {
    list.append(nb::make_tuple(answer.event->name, answer.error, answer.is_user_only));
  }
  return list;
}

nb::list choosePerfEvents(const std::vector<std::string> &names) {
  std::vector<PerfAnswer> answers = askForPerfEvents(names);
  std::vector<PerfAnswer> usable;
  for (const PerfAnswer &answer : answers) {
    if (answer.error == 0) {
      usable.push_back(answer);
    }
  }
  Sampler::instance().choosePerfEvents(std::move(usable));
  return toList(answers);
}

nb::dict perfCounts() {
  const PerfCounts &counts = Sampler::instance().perfCounts();
  nb::dict values;
  values["threads"] = counts.threads.load(std::memory_order_relaxed);
  values["threads_refused"] = counts.threads_refused.load(std::memory_order_relaxed);
  values["error"] = counts.error.load(std::memory_order_relaxed);
  values["enabled_ns"] = counts.enabled_ns.load(std::memory_order_relaxed);
  values["running_ns"] = counts.running_ns.load(std::memory_order_relaxed);
  return values;
}

} // namespace

void bindSampling(nb::module_ &module) {
  module.def("start_sampler", [](double rate_hz) { return Sampler::instance().start(rate_hz); });
  module.def("sampler_begun_ns", [] { return Sampler::instance().begunNs(); });
  module.def("stop_sampler", [] {
    Sampler::instance().stop();
    return monotonicNs(); // before any other thread can take the GIL
  });
  module.def("sampler_counts", samplerCounts);
  module.def("sampler_limitation", [] { return Sampler::instance().limitation(); });
  module.def("ask_for_perf_events",
             [](const std::vector<std::string> &names) { return toList(askForPerfEvents(names)); });
  module.def("choose_perf_events", choosePerfEvents);
  module.def("perf_counts", perfCounts);
  module.def("sampler_knows_gil", [] { return Sampler::instance().knowsGil(); });
}

} // namespace deepcontext
