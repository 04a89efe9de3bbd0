#pragma once
// Records the memory that PyTorch's allocators hand out and take back, on the host and on devices.
//
// On the host: the calls of posix_memalign and free inside libc10.so. On devices: the calls of
// c10::reportMemoryUsageToProfiler, which every caching allocator makes for each block. Both go
// through the linker's slots, which are set to hooks that call the original functions.
#include <cstdint>
#include <string>
#include <vector>

namespace deepcontext::torch {

/// Begin to record in the running session.
void startMemory();

/// Find the slots of the host's allocator. False with the reason.
bool findHostAllocator(std::string *reason);
/// Until `finishHostCheck`, note the calling thread's last allocation and free; record nothing.
void beginHostCheck();
/// True when the thread's last allocation and free were of `address` and `bytes`: the host's memory
/// is recorded from now on. Otherwise false with the reason, and nothing is hooked.
bool finishHostCheck(uintptr_t address, uint64_t bytes, std::string *reason);

/// Record the memory of devices whose allocators are loaded; returns their libraries' names.
std::vector<std::string> watchDevices();

/// Whether all hooks are still in place.
bool isMemoryWatched();
/// Record nothing more and remove the hooks. Running calls finish.
void stopMemory();

} // namespace deepcontext::torch
