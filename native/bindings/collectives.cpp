// The collectives of PyTorch's process groups and of compiled JAX programs, as Python sees them
// (typed in _native.pyi).
#include <nanobind/nanobind.h>

#include <map>
#include <optional>

#include "bindings/bindings.h"
#include "bindings/node_paths.h"
#include "bindings/text.h"
#include "bindings/without_gil.h"
#include "core/interner.h"
#include "core/recorder.h"
#include "jax/attribution.h"
#include "jax/collectives.h"
#include "jax/function_table.h"
#include "torch/collective_groups.h"
#include "torch/collectives.h"
#include "torch/observer.h"
#include "torch/param_comms.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

constexpr int64_t kUnknownNs = -1;

nb::list rowsAsList(const std::vector<torch::CollectiveRow> &rows) {
  double ns_per_tick = RecorderRegistry::instance().clock().nsPerTick();
  auto toNs = [=](uint64_t ticks) {
    return static_cast<uint64_t>(static_cast<double>(ticks) * ns_per_tick);
  };
  nb::list list;
  for (const torch::CollectiveRow &row : rows) {
    uint64_t duration_ns = toNs(row.duration_ticks);
    double share = torch::ExposedShare::value(row.exposed);
    auto exposed_ns = row.exposed == torch::ExposedShare::kUnknown
                          ? kUnknownNs
                          : static_cast<int64_t>(share * static_cast<double>(duration_ns));
    list.append(nb::make_tuple(row.group, row.number, row.order, row.operation, duration_ns,
                               toNs(row.own_ticks), static_cast<uint64_t>(row.size_bytes),
                               exposed_ns));
  }
  return list;
}

/// Put the places and samples of stretches into `values`.
void addSamples(const std::vector<StretchSample> &found, nb::dict *values) {
  std::vector<Recorder *> recorders = RecorderRegistry::instance().active();
  nb::list places, samples;
  std::map<const Node *, size_t> known;
  for (const StretchSample &sample : found) {
    auto [place, is_new] = known.emplace(sample.node, known.size());
    if (is_new) {
      places.append(pathAsList(*sample.node, recorders));
    }
    samples.append(nb::make_tuple(sample.order, place->second, static_cast<int>(sample.doing),
                                  static_cast<uint64_t>(sample.ns)));
  }
  (*values)["places"] = places;
  (*values)["samples"] = samples;
}

template <size_t count> nb::list namesAsList(const std::array<const char *, count> &names) {
  nb::list list;
  for (const char *name : names) {
    list.append(name);
  }
  return list;
}

nb::dict torchCollectives() {
  torch::Collectives::Reading found = torch::Collectives::instance().read();
  nb::list groups;
  size_t index = 0;
  for (const auto &group : torch::CollectiveGroups::instance().groups()) {
    groups.append(nb::make_tuple(reinterpret_cast<uintptr_t>(group.address),
                                 std::string_view(group.name), found.called[index++]));
  }
  nb::dict values;
  values["groups"] = groups;
  values["operations"] = namesAsList(torch::Collectives::kOperations);
  values["ended"] = found.ended;
  values["ended_on_device"] = found.ended_on_device;
  values["unmatched"] = found.unmatched;
  values["unknown"] = torch::CollectiveGroups::instance().unknown();
  values["rows"] = rowsAsList(found.rows);
  addSamples(found.samples, &values);
  return values;
}

nb::dict jaxCollectives() {
  jax::Collectives::Reading found = jax::Collectives::instance().read();
  auto [known, left_out] = withoutGil(
      [](WithoutGil without_gil) { return jax::Attribution::instance().collectives(without_gil); });
  nb::list groups, rows;
  for (const jax::CollectiveGroup &group : known) {
    nb::list members;
    for (uint32_t member : group.members) {
      members.append(member);
    }
    left_out += group.is_left_out;
    uint32_t launches = group.is_left_out ? 0 : found.launches[group.index];
    uint32_t frame_name = jax::FunctionTable::instance().frameName(group.function);
    std::string_view name = Interner::instance().text(frame_name);
    groups.append(nb::make_tuple(name, members, launches * group.of_run));
  }
  for (const jax::ProgramCollective &row : found.rows) {
    rows.append(nb::make_tuple(row.group, row.number_of_its, row.order, row.operation,
                               row.duration_ns, row.own_ns, row.bytes, kUnknownNs));
  }
  nb::dict values;
  values["groups"] = groups;
  values["operations"] = namesAsList(jax::Collectives::kOperations);
  values["left_out"] = left_out;
  values["rows"] = rows;
  addSamples(found.samples, &values);
  return values;
}

/// The C++ object of an instance of a class made by pybind11, which keeps its address first. 0 when
/// the instance has no room for one.
/// Source: pybind11/detail/common.h, struct instance.
uintptr_t instanceAddress(nb::handle instance) {
  constexpr Py_ssize_t kFewestBytes = sizeof(PyObject) + sizeof(void *);
  PyObject *object = instance.ptr();
  return Py_TYPE(object)->tp_basicsize < kFewestBytes
             ? 0
             : *reinterpret_cast<uintptr_t *>(reinterpret_cast<char *>(object) + sizeof(PyObject));
}

} // namespace

void bindCollectives(nb::module_ &module) {
  module.def("torch_load_group_calls", [] {
    return reasonOf([](std::string *reason) { return torch::ParamComms::instance().load(reason); });
  });
  module.def("torch_collectives", torchCollectives);
  module.def("jax_collectives", jaxCollectives);
  module.def("jax_collective_launches", [] { return jax::Collectives::instance().launches(); });
  module.def("torch_group_address", instanceAddress);
  module.def("torch_tell_groups_apart", [](uintptr_t default_group) {
    return torch::tellGroupsApart(reinterpret_cast<const void *>(default_group));
  });
}

} // namespace deepcontext
