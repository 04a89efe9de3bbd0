#pragma once
// The call path of a node of one thread's tree, as the profile shows it.
#include <vector>

#include "core/merge.h"

namespace deepcontext {

/// The frames from the outermost to the node's, without root and thread; links are followed and
/// plumbing is left out, as in a merge. Any thread; needs no GIL.
std::vector<FrameRecord> pathOf(const Node &node, const std::vector<Recorder *> &recorders,
                                const FrameResolver &resolver);

} // namespace deepcontext
