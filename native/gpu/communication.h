#pragma once
// Kernels that exchange data with other devices, known by their names.
#include <string_view>

namespace deepcontext::gpu {

/// Whether a kernel is of a library that moves data between devices. Copies between devices are not
/// counted, because nothing tells those of a collective from others.
bool isCommunicationKernel(std::string_view name);

} // namespace deepcontext::gpu
