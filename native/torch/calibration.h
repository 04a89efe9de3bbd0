#pragma once
// Finds where at::RecordFunction keeps its fields, by watching operators whose values are known.
#include <string>

#include "abi/torch.h"

namespace deepcontext::torch {

/// Start watching `aten::mul` calls of the calling thread. The caller then runs at least four of
/// them on a tensor that requires grad, with other operators between, and calls `finish`.
///
/// Each field is the one word of the object that had the expected value every time: the sequence
/// number that at::sequence_number::peek() gives, the thread id that currentThreadId() gives, and
/// for the inputs a pointer followed by the number 2.
bool beginCalibration(std::string *reason);

/// Stop watching. True when exactly one candidate is left for each field and together they are a
/// layout verified on a real build; otherwise false with what was found.
bool finishCalibration(std::string *reason);

/// The layout that the last successful calibration found.
const abi::RecordFunctionLayout &foundLayout();

} // namespace deepcontext::torch
