#pragma once
// Ranges that a program or framework marks through the vendor's own interface (roctx, NVTX).
#include <cstdint>

#include "core/recorder.h"

namespace deepcontext::gpu {

/// Opens a level on the calling thread; set once by the layer that knows Python.
using RangeOpener = void (*)(Recorder &recorder, FrameKind kind, uint32_t name, const void *owner);
void setRangeOpener(RangeOpener opener);

/// Begin a range on the calling thread; null is allowed. XLA marks what it runs by ranges such as
/// "TSL:Thunk:#name=fusion,hlo_op=fusion.3#": those become HLO frames named by their op.
void pushRange(const char *message);
/// End the calling thread's innermost range; ignored when there is none.
void popRange();

} // namespace deepcontext::gpu
