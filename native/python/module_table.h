#pragma once
// Module instances (torch.nn.Module objects) as ids.
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

/// All module instances whose call was seen. A first call is seen without the GIL, when only the
/// type's name can be read. Soon after, a pending call (GIL held, on the main thread) finds the
/// module on a stack, asks for its place in its model, and makes a weak reference that reports the
/// death of the instance.
///
/// The tree of a program that makes and frees modules is bounded: the id of a dead instance goes to
/// the next instance with the same label, and once many instances of a type have died, new ones
/// share an id until they have a label.
class ModuleTable {
public:
  static ModuleTable &instance();

  /// For caches keyed by the address of an instance.
  static const AddressEpochs &epochs() { return epochs_; }

  /// The id of an instance that is kept alive by a frame of the calling thread.
  uint32_t entry(const void *instance);
  /// The id of an instance that was seen before at this address. Does not read the instance.
  std::optional<uint32_t> find(const void *instance) const;
  /// "Linear 'encoder.fc1'", or the type's name when the instance has no label.
  std::string label(uint32_t id) const;

  /// The code object whose frames are module calls (kept alive by the caller of this function).
  static void setCallCode(const void *code) { call_code_.store(code, std::memory_order_relaxed); }
  static const void *callCode() { return call_code_.load(std::memory_order_relaxed); }

  // -- naming; GIL held
  /// Begin a session with no instance known. The resolver is called with a list of lists: the
  /// modules being called on each thread, outermost first.
  void start(PyObject *resolver);
  /// Call the resolver with the modules on the stacks now.
  void resolve();
  /// Label a living instance, seen before or not.
  void name(const void *instance, std::string label);
  /// The instance is dead.
  void forget(const void *instance);
  /// Addresses seen and not named yet.
  std::vector<uintptr_t> unnamed() const;
  /// End of a session: drop the resolver and all addresses; labels stay for readers of the tree.
  void stop();
  Mutex &forkLock() { return mutex_; }

private:
  // Instances with an id of their own in one session; further instances share one id a type.
  static constexpr size_t kMaxInstances = 20000;
  static constexpr uint32_t kManyDeaths = 64;

  struct Instance {
    std::string type;
    std::string label;
    bool is_shared = false; // by instances of the type without a label
    bool is_reused = false; // has data of a dead instance, so its label must not change
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
