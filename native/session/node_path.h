#pragma once
// The call path of a node of one thread's tree, as the profile shows it.
#include <vector>

#include "core/merge.h"

namespace deepcontext {

/// The frames from the outermost to that of the node, without root and thread. Links are followed
/// and hidden frames are left out, as in a merge. Any thread; needs no GIL.
std::vector<FrameRecord> pathOf(const Node &node, const std::vector<Recorder *> &recorders,
                                const FrameResolver &resolver);

} // namespace deepcontext
