#pragma once
// Names of the nodes of all layers.
#include "core/merge.h"

namespace deepcontext {

/// Knows what `a` and `b` of a node mean in each layer. Any thread, no GIL.
class ProfileFrameResolver final : public FrameResolver {
public:
  FrameRecord resolve(const Node &node) const override;
};

} // namespace deepcontext
