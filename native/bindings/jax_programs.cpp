// JAX: programs, windows of the tracer and the tree of device times, as Python sees them (typed in
// _native.pyi).
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings/bindings.h"
#include "bindings/text.h"
#include "bindings/without_gil.h"
#include "core/interner.h"
#include "jax/arguments.h"
#include "jax/attribution.h"
#include "jax/dispatch.h"
#include "jax/tree_writer.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

using namespace jax;

const char *originLabel(Origin origin) {
  switch (origin) {
  case Origin::kOwn:
    return "own";
  case Origin::kMembers:
    return "members";
  case Origin::kProducer:
    return "producer";
  case Origin::kConsumer:
    return "consumer";
  case Origin::kNone:
    return "none";
  }
  return "none";
}

nb::list toList(const SourceLine &line) {
  const Interner &interner = Interner::instance();
  nb::list out;
  out.append(interner.text(line.function));
  out.append(interner.text(line.file));
  out.append(line.line);
  return out;
}

nb::dict toDict(const Operation &operation) {
  nb::dict out;
  out["name"] = operation.name;
  out["opcode"] = operation.opcode;
  out["detail"] = operation.detail;
  out["op_name"] = operation.op_name;
  out["primitive"] = operation.primitive;
  out["shape"] = operation.shape;
  out["phase"] = phaseName(operation.phase);
  out["origin"] = originLabel(operation.origin);
  out["flops"] = operation.flops;
  out["bytes"] = operation.bytes;
  out["runs"] = operation.runs;
  nb::list lines;
  for (const SourceLine &line : operation.lines) {
    lines.append(toList(line));
  }
  out["lines"] = lines;
  nb::list members;
  for (const Member &member : operation.members) {
    nb::dict one;
    one["primitive"] = member.primitive;
    one["phase"] = phaseName(member.phase);
    one["source"] = toList(member.source);
    one["flops"] = member.flops;
    members.append(one);
  }
  out["members"] = members;
  nb::list nested;
  for (uint32_t index : operation.nested) {
    nested.append(index);
  }
  out["nested"] = nested;
  out["processes"] = operation.processes;
  out["is_exchange_of_unknown"] = operation.is_exchange_of_unknown;
  return out;
}

nb::dict toDict(const Program &program) {
  nb::dict out;
  out["uid"] = program.uid;
  out["module"] = program.module;
  out["hlo_id"] = program.hlo_id;
  out["instructions"] = program.instructions;
  out["arguments"] = program.arguments;
  out["argument_bytes"] = program.argument_bytes;
  out["output_bytes"] = program.output_bytes;
  out["aliased_outputs"] = program.aliased_outputs;
  out["has_operations"] = program.has_operations;
  nb::list operations;
  for (const Operation &operation : program.operations) {
    operations.append(toDict(operation));
  }
  out["operations"] = operations;
  return out;
}

TraceCut makeCut(const std::string &function, const std::string &file,
                 const std::vector<std::pair<std::string, std::string>> &callers) {
  Interner &interner = Interner::instance();
  TraceCut cut;
  cut.function = {interner.intern(function), interner.intern(file), 0};
  for (const auto &[caller_file, caller] : callers) {
    cut.callers.emplace(interner.intern(caller_file), interner.intern(caller));
  }
  return cut;
}

std::string_view viewOf(const nb::bytes &bytes) {
  return {bytes.c_str(), bytes.size()};
}

/// Read a program and bind it to the call it was compiled in. Returns its number, or -1 for bytes
/// that are not an HLO module. Leaves out its operations when the programs so far take
/// `most_bytes`.
int64_t addProgram(nb::bytes hlo, const std::string &function, const std::string &file,
                   const std::vector<std::pair<std::string, std::string>> &callers,
                   const std::string &label, const std::vector<uint32_t> &processes, uint32_t own,
                   uint64_t most_bytes, uint64_t devices) {
  Program program;
  program.devices = devices;
  Placement placement{processes, own};
  TraceCut cut = makeCut(function, file, callers);
  std::vector<uint32_t> functions;
  uint64_t signature = 0;
  for (const ActiveCall *call : openCallsOfFunction()) {
    functions.push_back(call->function);
    signature = signatureOf(call->arguments, call->argument_count, call->keywords);
  }
  return withoutGil([&](WithoutGil without_gil) -> int64_t {
    Attribution &attribution = Attribution::instance();
    bool has_room = attribution.programCounts(without_gil).bytes < most_bytes;
    if (!buildProgram(viewOf(hlo), cut, placement, has_room, &program)) {
      return -1;
    }
    return attribution.addProgram(without_gil, std::move(program), functions, signature, label);
  });
}

nb::object readProgram(nb::bytes hlo, const std::string &function, const std::string &file,
                       const std::vector<std::pair<std::string, std::string>> &callers) {
  Program program;
  if (!buildProgram(viewOf(hlo), makeCut(function, file, callers), {}, /*with_operations=*/true,
                    &program)) {
    return nb::none();
  }
  return toDict(program);
}

nb::object program(uint32_t uid) {
  LabelledProgram found = withoutGil(
      [&](WithoutGil without_gil) { return Attribution::instance().program(without_gil, uid); });
  if (!found.program) {
    return nb::none();
  }
  nb::dict out = toDict(*found.program);
  out["label"] = found.label;
  return out;
}

constexpr char kLaunchNotes[] = "deepcontext launch notes";

/// Calls noted in a closed window. A capsule, not a class: nanobind ends the process when it has no
/// memory to register an object of a class.
nb::capsule closeNotedWindow() {
  auto notes = std::make_unique<std::vector<Launch>>(closeWindow());
  nb::capsule out(notes.get(), kLaunchNotes,
                  [](void *kept) noexcept { delete static_cast<std::vector<Launch> *>(kept); });
  static_cast<void>(notes.release());
  return out;
}

nb::tuple addWindow(nb::capsule notes, nb::bytes xspace) {
  auto &launches = *static_cast<std::vector<Launch> *>(notes.data(kLaunchNotes));
  Attribution &attribution = Attribution::instance();
  bool is_whole = false;
  Attribution::LastWindow last = withoutGil([&](WithoutGil without_gil) {
    TraceWindow window;
    is_whole = readTraceWindow(viewOf(xspace), &window);
    if (is_whole) {
      attribution.addWindow(without_gil, std::move(window), std::move(launches));
    } else {
      attribution.addDamagedWindow(without_gil);
    }
    return attribution.lastWindow(without_gil);
  });
  return nb::make_tuple(is_whole, last.runs, last.launches, last.waiting, last.scarce, last.events);
}

nb::list readRuns(nb::bytes xspace) {
  TraceWindow window;
  bool is_whole = readTraceWindow(viewOf(xspace), &window);
  nb::list runs;
  for (const Run &run : window.runs) {
    nb::dict operations;
    for (const auto &[name, times] : run.operations) {
      operations[nb::cast(name)] =
          nb::make_tuple(times.count, times.total_ps, times.minimum_ps, times.maximum_ps);
    }
    nb::dict one;
    one["program_id"] = run.program_id;
    one["run_id"] = run.run_id;
    one["module"] = run.module;
    one["start_ns"] = run.start_ns;
    one["end_ns"] = run.end_ns;
    one["is_complete"] = run.is_complete && is_whole;
    one["operations"] = operations;
    runs.append(one);
  }
  return runs;
}

nb::dict windowCounts() {
  WindowCounts counts = withoutGil(
      [](WithoutGil without_gil) { return Attribution::instance().counts(without_gil); });
  nb::dict out;
  out["windows"] = counts.windows;
  out["window_ns"] = counts.window_ns;
  out["events"] = counts.events;
  out["operation_events"] = counts.operation_events;
  out["sampled_executions"] = counts.executions;
  out["executions_without_launch"] = counts.executions_without_launch;
  out["sampled_launches"] = counts.launches;
  out["sampled_runs"] = counts.runs;
  out["joined"] = counts.joined;
  out["without_launch"] = counts.without_launch;
  out["cut_at_start"] = counts.cut_at_start;
  out["cut_at_end"] = counts.cut_at_end;
  out["unmatched"] = counts.unmatched;
  out["unknown_operations"] = counts.unknown_operations;
  out["untimed_operations"] = counts.untimed_operations;
  out["damaged_windows"] = counts.damaged_windows;
  return out;
}

nb::dict programCounts() {
  ProgramCounts counts = withoutGil(
      [](WithoutGil without_gil) { return Attribution::instance().programCounts(without_gil); });
  nb::dict out;
  out["programs"] = counts.programs;
  out["programs_without_operations"] = counts.without_operations;
  out["programs_with_loops"] = counts.with_loops;
  out["program_bytes"] = counts.bytes;
  return out;
}

nb::tuple writeTree() {
  WrittenCounts counts = withoutGil(writeOperationTimes);
  nb::dict out;
  out["launches"] = counts.launches;
  out["unsampled_launches"] = counts.unsampled_launches;
  out["borrowed_launches"] = counts.borrowed_launches;
  out["launches_by_parts"] = counts.launches_by_parts;
  out["device_ns"] = static_cast<uint64_t>(counts.device_ns);
  nb::list operations, callbacks, estimated;
  for (const auto &[place, time] : counts.operations) {
    (time.is_callback ? callbacks : operations)
        .append(nb::make_tuple(place.first, place.second, time.executions, time.device_ns));
    if (time.is_count_estimated) {
      estimated.append(nb::make_tuple(place.first, place.second));
    }
  }
  return nb::make_tuple(out, operations, callbacks, estimated);
}

} // namespace

void bindJaxPrograms(nb::module_ &module) {
  module.def("jax_add_program", addProgram, nb::arg("hlo"), nb::arg("function"), nb::arg("file"),
             nb::arg("callers"), nb::arg("label"), nb::arg("processes") = std::vector<uint32_t>(),
             nb::arg("own") = 0, nb::arg("most_bytes") = UINT64_MAX, nb::arg("devices") = 1);
  module.def("jax_program_counts", programCounts);
  module.def("jax_program", program);
  module.def("jax_read_program", readProgram);
  module.def("jax_open_window", openWindow);
  module.def("jax_close_window", closeNotedWindow);
  module.def("jax_add_window", addWindow);
  module.def("jax_read_runs", readRuns);
  module.def("jax_window_counts", windowCounts);
  module.def("jax_write_tree", writeTree);
}

} // namespace deepcontext
