#pragma once
// The process's exit status, if the profiler was asked to set it.

namespace deepcontext {

/// Let the process end with `status` if its program succeeds; 0 leaves the status unchanged. Call
/// it early with 0, because only handlers that are registered later run before it. A forked child
/// is not affected.
void setExitStatus(int status);

} // namespace deepcontext
