#pragma once
// The call path of an operation of a compiled program, below its launch.
#include "core/thread_tree.h"
#include "jax/program.h"

namespace deepcontext::jax {

/// Return the node of an operation: phase > the model's Python frames > primitive > instruction,
/// below `parent`. Owner of the tree only.
Node *writeOperationPath(ThreadTree &tree, Node *parent, const Operation &operation);

} // namespace deepcontext::jax
