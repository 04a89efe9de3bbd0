#pragma once
// The one RecordFunction observer: every operator and scope of PyTorch becomes a node and a time.

#include "abi/torch.h"

namespace deepcontext::torch {

struct ObserverOptions {
  abi::RecordFunctionLayout layout;
  bool with_shapes = false;
};

/// Register the observer. Called once per session, GIL held.
void startObserver(const ObserverOptions &options);
/// Remove it. Running callbacks finish; new operators pay nothing.
void stopObserver();
bool isObserverRunning();

} // namespace deepcontext::torch
