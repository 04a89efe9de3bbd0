#pragma once
// The one RecordFunction observer: every operator and scope of PyTorch becomes a node and a time.

#include "abi/torch.h"

namespace deepcontext::torch {

struct ObserverOptions {
  abi::RecordFunctionLayout layout;
  bool with_shapes = false;
  bool with_type_windows = false; // not with shapes, which have the types
};

/// Register the observer. Called once per session, GIL held.
void startObserver(const ObserverOptions &options);
/// Number the collectives of each process group by itself from now on, which needs the inputs of
/// operators. `default_group`: address of its c10d::ProcessGroup. GIL held. False when no observer
/// runs, or the address is not one; nothing has changed then.
bool tellGroupsApart(const void *default_group);
/// Remove it. Running callbacks finish; new operators pay nothing.
void stopObserver();
bool isObserverRunning();

} // namespace deepcontext::torch
