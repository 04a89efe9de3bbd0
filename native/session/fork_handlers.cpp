#include "session/fork_handlers.h"

#include <pthread.h>

#include <array>

#include "core/allocation_ledger.h"
#include "core/exemplars.h"
#include "core/guard.h"
#include "core/interner.h"
#include "core/metric_registry.h"
#include "core/mutex.h"
#include "core/recorder.h"
#include "core/steps.h"
#include "core/windows.h"
#include "gpu/collector.h"
#include "jax/attribution.h"
#include "jax/function_table.h"
#include "jax/live_arrays.h"
#include "jax/source_frames.h"
#include "python/code_table.h"
#include "python/fork_pause.h"
#include "python/module_table.h"
#include "python/operations.h"
#include "python/watcher.h"
#include "sampling/sampler.h"
#include "sampling/thread_names.h"
#include "session/window_cutter.h"
#include "torch/type_windows.h"
#include "unwind/address_table.h"

namespace deepcontext {

namespace {

/// Locks that another thread may hold at a fork, in lock order. The fork waits for them, so that
/// the child, in which that thread does not exist, finds them free and their data consistent: code
/// objects and modules die in children, too. None is held for long (a cut of Windows takes some
/// milliseconds, and ends before a fork made by Python); the one of jax::Attribution, which is, is
/// not among them.
std::array<Mutex *, 13> forkLocks() {
  return {&Windows::instance().forkLock(),
          &Exemplars::instance().forkLock(),
          &torch::TypeWindows::instance().forkLock(),
          &jax::arraysForkLock(),
          &jax::FunctionTable::instance().forkLock(),
          &RecorderRegistry::instance().forkLock(),
          &ModuleTable::instance().forkLock(),
          &CodeTable::instance().forkLock(),
          &ThreadNames::instance().forkLock(),
          &jax::SourceFrames::instance().forkLock(),
          &unwind::AddressTable::instance().forkLock(),
          &Interner::instance().forkLock(),
          &MetricRegistry::instance().forkLock()};
}

/// The threads that read a GPU's records end first, because they may need these locks.
void beforeFork() {
  guarded(gpu::beforeFork);
  AllocationLedger::instance().lockForFork(); // its owner never waits for one of the others
  for (Mutex *mutex : forkLocks()) {
    mutex->lock();
  }
  RecorderRegistry::instance().prepareFork();
}

void unlock() {
  for (Mutex *mutex : forkLocks()) {
    mutex->unlock();
  }
  AllocationLedger::instance().unlockAfterFork();
}

void afterFork() {
  unlock();
  guarded([] { gpu::afterFork(/*is_child=*/false); });
}

/// A forked child records nothing: it would write to a copy of the parent's trees.
void inForkedChild() {
  RecorderRegistry::instance().abandonInChild();
  Steps::instance().abandonInChild();
  unlock();
  AllocationLedger::instance().abandonReadingInChild();
  guarded([] { gpu::afterFork(/*is_child=*/true); });
  jax::Attribution::instance().abandonInChild();
  Sampler::instance().abandonInChild();
  Watcher::instance().abandonInChild();
  WindowCutter::instance().abandonInChild();
  ForkPause::instance().abandonInChild();
  Operations::instance().abandonInChild();
}

} // namespace

void installForkHandlers() {
  pthread_atfork(beforeFork, afterFork, inForkedChild);
}

} // namespace deepcontext
