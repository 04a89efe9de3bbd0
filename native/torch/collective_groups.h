#pragma once
// The process group of a collective, read from the inputs of its operator.
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "abi/torch.h"
#include "core/spin_lock.h"
#include "torch/collectives.h"

namespace deepcontext::torch {

/// Numbers the groups of a process in the order in which their first collective is seen; the
/// default group is 0. While groups are not told apart, every collective is one of group 0. Groups
/// that say their names (`ParamComms`) are others.
///
/// An operator's group is the first of its inputs that is an object of TorchScript:
///
///     c10::IValue -> c10::ivalue::Object -> slots_[0], a c10::IValue -> c10d::ProcessGroup
///
/// Proof: where an object keeps its slots is not assumed. It is the one word of the object that
/// leads to something with the virtual table of the default group, whose address Python knows.
/// Guard: at each call the table is compared again. Fallback: without such a word, or with another
/// table, the group is unknown, and the collective is not numbered. Source:
/// torch/csrc/distributed/c10d/Ops.cpp, aten/src/ATen/core/ivalue_inl.h, torch 2.4 to 2.15.
class CollectiveGroups {
public:
  static constexpr GroupIndex kUnknown = Collectives::kMostGroups;

  static CollectiveGroups &instance() {
    static CollectiveGroups *const groups = new CollectiveGroups();
    return *groups;
  }

  /// Tell groups apart from now on; `default_group` is the address of a c10d::ProcessGroup. False
  /// when nothing with a virtual table of a loaded library is there.
  bool watch(const void *default_group);
  bool isWatched() const { return table_.load(std::memory_order_acquire) != nullptr; }
  /// Forget everything.
  void clear();

  /// The group of an operator whose inputs are at `inputs_offset`; `kUnknown` when it cannot be
  /// read, or when there are too many groups.
  GroupIndex of(const void *record_function, int inputs_offset);

  /// The group with this name; `kUnknown` when there are too many groups.
  GroupIndex named(std::string_view name);

  /// What a group is known by: one of the two.
  struct Identity {
    const void *address = nullptr;
    std::string_view name; // for the life of the process
  };
  /// By index; neither is known of group 0 while groups are not told apart.
  std::vector<Identity> groups();
  /// Collectives whose group was unknown.
  uint64_t unknown() const { return unknown_.load(std::memory_order_relaxed); }

private:
  void calibrate(const abi::IValue *values, size_t count);
  const void *groupAmong(const abi::IValue *values, size_t count) const;
  GroupIndex indexOf(const void *group);
  template <typename Test> GroupIndex indexWhere(const Test &is_it) const;

  std::atomic<const void *> table_{nullptr}; // the virtual table of a process group
  std::atomic<int> slots_offset_{0};         // 0: not known yet
  std::atomic<uint32_t> tag_{0};             // of an object
  std::atomic<uint64_t> unknown_{0};
  SpinLock lock_;
  int process_ = 0; // that cleared the groups last
  Identity groups_[Collectives::kMostGroups] = {};
  GroupIndex count_ = 1; // with the default group
};

} // namespace deepcontext::torch
