#pragma once
// The process's exit status, where the profiler was asked to have a say in it.

namespace deepcontext {

/// Let the process end with `status` if its program succeeds; 0 leaves the status alone. Call it
/// early with 0: what registers with atexit later then still runs. A forked child is not affected.
void setExitStatus(int status);

} // namespace deepcontext
