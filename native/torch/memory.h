#pragma once
// Watches the memory that PyTorch's allocators hand out and take back, on the host and on devices.
//
// On the host: the calls of posix_memalign and free inside libc10.so. On devices: the calls of
// c10::reportMemoryUsageToProfiler, which every caching allocator makes for each block. Both go
// through slots of the linker that are set to functions of ours, which call the true ones.
#include <cstdint>
#include <string>
#include <vector>

namespace deepcontext::torch {

/// Take part in the running session.
void startMemory();

/// Find the slots of the host's allocator. False with the reason.
bool findHostAllocator(std::string *reason);
/// From here to `finishHostCheck` the calling thread's allocations are noted, nobody's recorded.
void beginHostCheck();
/// Whether the last allocation and the last free of the thread were of `address` and of `bytes`;
/// then the host's memory is recorded from now on. False with the reason, and nothing is hooked.
bool finishHostCheck(uintptr_t address, uint64_t bytes, std::string *reason);

/// Record the memory of devices whose allocators are loaded; returns their libraries' names.
std::vector<std::string> watchDevices();

/// Whether all hooks still stand where they were put.
bool isMemoryWatched();
/// Take no more, and take the hooks away. Calls under way finish.
void stopMemory();

} // namespace deepcontext::torch
