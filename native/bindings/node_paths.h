#pragma once
// Call paths of nodes as Python's lists.
#include <nanobind/nanobind.h>

#include <vector>

#include "core/recorder.h"

namespace deepcontext {

/// The frames of a node's path, outermost first, each as (kind, name, file, line). GIL held.
nanobind::list pathAsList(const Node &node, const std::vector<Recorder *> &recorders);

} // namespace deepcontext
