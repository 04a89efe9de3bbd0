#pragma once
// The frames of the processor that this is compiled for. Both kinds are compiled everywhere, so
// that tests can read the tables of either.
#include <type_traits>

#include "unwind/processor_aarch64.h"
#include "unwind/processor_x86_64.h"

namespace deepcontext::unwind {

using Processor = std::conditional_t<kThisProcessor == ProcessorKind::kAarch64, Aarch64, X86_64>;
using FrameRule = Processor::Rule;

} // namespace deepcontext::unwind
