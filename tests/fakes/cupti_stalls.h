#pragma once
// What the fake CUPTI's PC sampling needs of the rest of it, and the other way round.
#include <cstddef>
#include <cstdint>

namespace fake {

/// The result a test wants of a function, 0 for none.
int faultOf(const char *function);
/// A name that stays where it is, as CUPTI's do: shared by all records that have it.
const char *sharedName(const char *name);
void tellModuleLoaded(uint32_t module, const char *cubin, size_t bytes);

void resetStalls();
/// Contexts that are being sampled.
size_t sampledContexts();
/// Calls that the interface does not allow: a start without a stop, samples of a window that were
/// not read before the next, a context that is gone.
uint64_t stallMisuses();
uint64_t contextsLeftEnabled();
void stallContextGone(void *context);

} // namespace fake
