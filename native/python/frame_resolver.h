#pragma once
// Names of the nodes that the Python, module and operator layers make.
#include "core/merge.h"

namespace deepcontext {

/// Resolves python (a = code id, b = instruction offset), module (a = instance id) and named kinds
/// (a = interned name). Any thread, no GIL.
class PythonFrameResolver final : public FrameResolver {
public:
  FrameRecord resolve(const Node &node) const override;
};

} // namespace deepcontext
