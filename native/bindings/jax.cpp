// JAX: dispatch hook, open calls, arrays and ranges, as Python sees them (typed in _native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include "bindings/bindings.h"
#include "bindings/text.h"
#include "bindings/without_gil.h"
#include "jax/arguments.h"
#include "jax/attribution.h"
#include "jax/buffer_waits.h"
#include "jax/callbacks.h"
#include "jax/collectives.h"
#include "jax/device_ranges.h"
#include "jax/dispatch.h"
#include "jax/function_table.h"
#include "jax/live_arrays.h"
#include "jax/spans.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

using namespace jax;

nb::list calls() {
  nb::list out;
  for (const ActiveCall *call : openCallsOfFunction()) {
    nb::list arguments;
    size_t names = call->keywords ? static_cast<size_t>(PyTuple_GET_SIZE(call->keywords)) : 0;
    for (size_t i = 0; i < call->argument_count + names; ++i) {
      arguments.append(nb::borrow(call->arguments[i]));
    }
    nb::object keywords = call->keywords ? nb::borrow(call->keywords) : nb::object(nb::tuple());
    const Function &function = FunctionTable::instance().at(call->function);
    out.append(nb::make_tuple(nb::borrow(call->callable), function.name, function.shown,
                              function.qualified_name, function.file, function.first_line,
                              arguments, keywords));
  }
  return out;
}

void bindDispatch(nb::module_ &module) {
  module.def(
      "jax_function",
      [](const std::string &name, const std::string &qualified_name, const std::string &file,
         int first_line, const std::string &shown) {
        return FunctionTable::instance().add(name, qualified_name, file, first_line, shown).id;
      },
      nb::arg("name"), nb::arg("qualified_name"), nb::arg("file"), nb::arg("first_line"),
      nb::arg("shown") = "");
  module.def("jax_hook", [](nb::object callable, uint32_t function) {
    return reasonOf([&](auto *reason) { return hook(callable.ptr(), function, reason); });
  });
  module.def("jax_unhook", [](nb::object callable) { unhook(callable.ptr()); });
  module.def("jax_is_hooked", [](nb::object callable) { return isHooked(callable.ptr()); });
  module.def(
      "jax_set_marks",
      [](bool are_told, nb::object is_jit_disabled) {
        setMarks(are_told, orNull(is_jit_disabled));
      },
      nb::arg("are_told"), nb::arg("is_jit_disabled").none());
  module.def("jax_mark_slow", [](nb::args) { markSlow(); });
  module.def("jax_mark_launch", markLaunch);
  module.def("jax_begin_call",
             [](nb::object callable, uint32_t function) { beginCall(callable.ptr(), function); });
  module.def("jax_end_call",
             [](nb::object callable, bool has_failed) { endCall(callable.ptr(), has_failed); });
  module.def("jax_count_call", countCall);
  module.def("jax_enter_callback", [](nb::args) { return enterCallback(); });
  module.def("jax_leave_callback", [](uint64_t token, nb::args) { leaveCallback(token); });
  module.def("jax_calls", calls);
  module.def("jax_add_phase_time", addPhaseTime);
  module.def("jax_enter_span", [](const std::string &kind, const std::string &name) {
    return enterSpan(kind == "copy" ? FrameKind::kCopy : FrameKind::kMarker, name);
  });
  module.def("jax_leave_span", leaveSpan);
  module.def(
      "jax_watch_host_arrays",
      [](nb::object type, nb::object other) { watchHostArrays(orNull(type), orNull(other)); },
      nb::arg("array_type").none(), nb::arg("other").none());
  module.def("jax_hook_buffer", [](nb::object type) {
    return reasonOf([&](auto *reason) { return hookBuffer(type.ptr(), reason); });
  });
  module.def("jax_unhook_buffer", [](nb::object type) { unhookBuffer(type.ptr()); });
}

void bindArrays(nb::module_ &module) {
  module.def(
      "jax_watch_arrays",
      [](nb::object type, nb::object nodes) {
        return reasonOf(
            [&](auto *reason) { return watchArrays(type.ptr(), orNull(nodes), reason); });
      },
      nb::arg("array_type"), nb::arg("nodes").none());
  module.def("jax_search_arrays", [](nb::object result) {
    Search search = searchArrays(result.ptr());
    return std::make_pair(search.arrays, search.visits);
  });
  module.def("jax_unwatch_arrays", unwatchArrays);
  module.def("jax_note_copied", [](nb::object result) { noteCopied(result.ptr()); });
  module.def("jax_fed_back", [] {
    nb::list out;
    for (const auto &[function, known] : fedBack()) {
      out.append(nb::make_tuple(FunctionTable::instance().at(function).name, known.launches,
                                known.fed_back));
    }
    return out;
  });
  module.def("jax_begin_weighing", beginWeighing);
  module.def("jax_weigh_arrays",
             [](nb::list arrays, bool is_device) { weighArrays(arrays.ptr(), is_device); });
  module.def("jax_array_growth", [] {
    ArrayGrowth growth = arrayGrowth(/*is_device=*/false); // both were checked equally often
    return std::make_pair(growth.looks(), growth.since());
  });
  module.def("jax_finish_weighing", [](bool is_step_end) {
    HeldArrays held = finishWeighing(is_step_end);
    return std::make_pair(held.count, held.bytes);
  });
}

} // namespace

void bindJax(nb::module_ &module) {
  bindDispatch(module);
  bindArrays(module);
  module.def("jax_device_ranges", [] {
    DeviceRangeCounts counts = deviceRangeCounts();
    return std::make_pair(counts.operations, counts.known);
  });
  module.def("jax_is_injected", isInjected);
  module.def("jax_clear", [] {
    withoutGil([](WithoutGil without_gil) { Attribution::instance().clear(without_gil); });
    clearDeviceRanges();
    clearArrays();
    Collectives::instance().clear();
  });
}

} // namespace deepcontext
