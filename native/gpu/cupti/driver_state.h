#pragma once
// Whether the program uses CUDA yet.
#include <string>

namespace deepcontext::gpu::cupti {

/// Whether this process has loaded the driver library at `path` and called cuInit; loads nothing.
bool isDriverRunning(const std::string &path);

} // namespace deepcontext::gpu::cupti
