// The CPU sampler, as Python sees it (typed in _native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings/bindings.h"
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
  values["threads"] = counts.threads.load(std::memory_order_relaxed);
  values["threads_refused"] = counts.threads_refused.load(std::memory_order_relaxed);
  values["own_cpu_ns"] = counts.own_cpu_ns.load(std::memory_order_relaxed);
  return values;
}

} // namespace

void bindSampling(nb::module_ &module) {
  module.def("start_sampler", [](double rate_hz) { return Sampler::instance().start(rate_hz); });
  module.def("stop_sampler", [] { Sampler::instance().stop(); });
  module.def("sampler_counts", samplerCounts);
  module.def("sampler_limitation", [] { return Sampler::instance().limitation(); });
  module.def("sampler_knows_gil", [] { return Sampler::instance().knowsGil(); });
}

} // namespace deepcontext
