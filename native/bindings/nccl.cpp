// What NCCL said of its collectives, as Python sees it (typed in _native.pyi).
#include <nanobind/nanobind.h>

#include "bindings/bindings.h"
#include "nccl/calls.h"

namespace nb = nanobind;

namespace deepcontext {

namespace {

nb::dict read() {
  nccl::Calls::Reading found = nccl::Calls::instance().read();
  nb::list communicators, calls;
  for (const nccl::Communicator &each : found.communicators) {
    communicators.append(nb::make_tuple(each.id, each.ranks, each.rank, each.nodes));
  }
  for (const nccl::CallSum &sum : found.sums) {
    nb::dict row;
    row["communicator"] = static_cast<int>(sum.communicator) - 1;
    row["function"] = found.names[sum.function].data();
    row["algorithm"] = found.names[sum.algorithm].data();
    row["protocol"] = found.names[sum.protocol].data();
    row["calls"] = sum.calls;
    row["bytes"] = sum.bytes;
    row["timed"] = sum.timed;
    row["timed_bytes"] = sum.timed_bytes;
    row["kernel_ns"] = sum.kernel_ns;
    row["shortest_ns"] = sum.shortest_ns;
    row["longest_ns"] = sum.longest_ns;
    row["proxied"] = sum.proxied;
    row["proxy_ns"] = sum.proxy_ns;
    calls.append(row);
  }
  nb::dict values;
  values["communicators"] = communicators;
  values["calls"] = calls;
  values["dropped"] = found.dropped;
  values["late"] = found.late;
  return values;
}

} // namespace

void bindNccl(nb::module_ &module) {
  module.def("nccl_start", [] { nccl::Calls::instance().begin(); });
  module.def("nccl_stop", [] { nccl::Calls::instance().end(); });
  module.def("nccl_read", read);
}

} // namespace deepcontext
