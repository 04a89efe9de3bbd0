#pragma once
// Collectives that a process group says it is about to run on a device.
#include <cstdint>

#include "core/recorder.h"
#include "torch/param_comms.h"

namespace deepcontext::torch {

/// Bytes of the call's larger side.
uint64_t sizeOf(const GroupCall &call);
/// The name of the call's node: "record_param_comms(allreduce, f32)". Owner thread only.
uint32_t nameOf(Recorder &recorder, const GroupCall &call);
/// Number the call, if it is a collective that no rank leaves before the last has come, and let
/// what the thread launches be its work until the operator `record_function` ends. Owner thread
/// only.
void noteDeviceCollective(Recorder &recorder, const void *record_function, const GroupCall &call);

} // namespace deepcontext::torch
