#pragma once
// Module instances (torch.nn.Module objects) as ids that are never used twice.
#include <Python.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/mutex.h"
#include "python/code_table.h"

namespace deepcontext {

/// All module instances whose call was seen. First sight happens without the GIL, where only the
/// type's name can be read; the instance's place in its model is asked for soon after through a
/// pending call (GIL held, on the main thread), which sees the module still on a stack. A weak
/// reference made there tells when the instance dies and its address may get a new meaning.
///
/// A program that makes and frees modules as it goes has a bounded tree: the id of a dead instance
/// goes to the next one with the same label, and once many instances of a type have died, a new one
/// is known by its type alone until it has a label.
class ModuleTable {
public:
  static ModuleTable &instance();

  /// For caches keyed by the address of an instance.
  static const AddressEpochs &epochs() { return epochs_; }

  /// The id of an instance that is kept alive by a frame of the calling thread.
  uint32_t entry(const void *instance);
  /// The id of an instance that was seen before at this address. Reads nothing of it.
  std::optional<uint32_t> find(const void *instance) const;
  /// "Linear 'encoder.fc1'", or the type's name where no more is known.
  std::string label(uint32_t id) const;

  /// The code object whose frames are module calls (kept alive by the caller of this function).
  static void setCallCode(const void *code) { call_code_.store(code, std::memory_order_relaxed); }
  static const void *callCode() { return call_code_.load(std::memory_order_relaxed); }

  // -- naming; GIL held
  /// Begin a session with no instance known. The resolver is called with a list of lists: the
  /// modules being called on each thread, outermost first.
  void start(PyObject *resolver);
  /// Hand the modules on the stacks to the resolver now.
  void resolve();
  /// Label an instance that is alive, seen before or not.
  void name(const void *instance, std::string label);
  /// The instance is dead.
  void forget(const void *instance);
  /// Addresses seen and not named yet.
  std::vector<uintptr_t> unnamed() const;
  /// Drop the resolver and all addresses (a session ended); labels stay for who reads the tree.
  void stop();
  Mutex &forkLock() { return mutex_; }

private:
  // What one session tells apart at most; further instances are known by their type.
  static constexpr size_t kMaxInstances = 20000;
  static constexpr uint32_t kManyDeaths = 64;

  struct Instance {
    std::string type;
    std::string label;
    bool is_shared = false; // by all instances of the type that have no label yet
    bool is_reused = false; // holds what a dead instance recorded: its label must not change
  };
  uint32_t add(std::string type);
  uint32_t sharedId(const std::string &type);
  uint32_t labelledId(const std::string &type, const std::string &label);
  void forgetLocked(const void *instance);
  void scheduleResolve();

  // Static, so that the hot path reads them without going through instance().
  static inline AddressEpochs epochs_; // written with the mutex held
  static inline std::atomic<const void *> call_code_{nullptr};

  mutable Mutex mutex_;
  std::atomic<bool> is_scheduled_{false};
  std::deque<Instance> instances_;
  std::unordered_map<const void *, uint32_t> by_address_;
  std::unordered_map<std::string, uint32_t> shared_;             // by type
  std::unordered_map<std::string, uint32_t> deaths_;             // by type
  std::unordered_map<std::string, std::vector<uint32_t>> spare_; // ids of the dead, by label
  PyObject *resolver_ = nullptr;
};

} // namespace deepcontext
