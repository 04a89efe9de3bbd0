#include "torch/collective_groups.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

#include "core/interner.h"
#include "core/memory_reader.h"

namespace deepcontext::torch {

namespace {

// An Object has a table, two counts, its type, which keeps a compilation unit alive, and its slots.
constexpr int kFirstSlotsOffset = 16;
constexpr int kLastSlotsOffset = 160;
constexpr size_t kMostInputs = 8;

const MemoryReader &reader() {
  static const MemoryReader *const reader = new MemoryReader();
  return *reader;
}

/// The word at an address that may be anything; null when it cannot be read.
const void *wordAt(const void *address) {
  const void *word = nullptr;
  return address && reader().read(address, &word, sizeof word) ? word : nullptr;
}

const void *advanced(const void *address, int bytes) {
  return static_cast<const char *>(address) + bytes;
}

} // namespace

bool CollectiveGroups::watch(const void *default_group) {
  const void *table = wordAt(default_group);
  Dl_info library;
  if (!table || dladdr(table, &library) == 0) {
    return false;
  }
  std::lock_guard<SpinLock> guard(lock_);
  groups_[0].address = default_group;
  table_.store(table, std::memory_order_release);
  return true;
}

void CollectiveGroups::clear() {
  if (process_ != getpid()) { // its holder does not exist in a forked child
    process_ = getpid();
    lock_.unlock();
  }
  std::lock_guard<SpinLock> guard(lock_);
  table_.store(nullptr);
  slots_offset_.store(0);
  unknown_.store(0);
  groups_[0] = {};
  count_ = 1;
}

GroupIndex CollectiveGroups::of(const void *record_function, int inputs_offset) {
  if (!isWatched()) {
    return 0;
  }
  auto *values = abi::readAt<abi::IValue *>(record_function, inputs_offset);
  size_t count = values ? abi::readAt<size_t>(record_function, inputs_offset + 8) : 0;
  count = std::min(count, kMostInputs);
  if (slots_offset_.load(std::memory_order_acquire) == 0) {
    calibrate(values, count);
  }
  GroupIndex index = indexOf(groupAmong(values, count));
  if (index == kUnknown) {
    unknown_.fetch_add(1, std::memory_order_relaxed);
  }
  return index;
}

GroupIndex CollectiveGroups::named(std::string_view name) {
  auto is_it = [name](const Identity &each) { return !each.address && each.name == name; };
  {
    std::lock_guard<SpinLock> guard(lock_);
    GroupIndex index = indexWhere(is_it);
    if (index != count_ || index == Collectives::kMostGroups) {
      return index; // kUnknown where there are too many
    }
  }
  Interner &interner = Interner::instance(); // its lock is not waited for with this one held
  std::string_view kept = interner.text(interner.intern(name));
  std::lock_guard<SpinLock> guard(lock_);
  GroupIndex index = indexWhere(is_it);
  if (index == Collectives::kMostGroups) {
    return kUnknown;
  }
  if (index == count_) {
    groups_[count_++] = {nullptr, kept};
  }
  return index;
}

std::vector<CollectiveGroups::Identity> CollectiveGroups::groups() {
  std::vector<Identity> found;
  found.reserve(Collectives::kMostGroups);
  std::lock_guard<SpinLock> guard(lock_);
  found.assign(groups_, groups_ + count_);
  return found;
}

/// Find out where objects keep their slots. The kernel copies what is read, because most words that
/// are tried are no addresses.
void CollectiveGroups::calibrate(const abi::IValue *values, size_t count) {
  const void *table = table_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    for (int offset = kFirstSlotsOffset; offset <= kLastSlotsOffset; offset += 8) {
      bool is_object = values[i].tag != abi::kTensorTag && values[i].payload;
      const void *slots = is_object ? wordAt(advanced(values[i].payload, offset)) : nullptr;
      if (wordAt(wordAt(slots)) == table) {
        tag_.store(values[i].tag, std::memory_order_relaxed);
        slots_offset_.store(offset, std::memory_order_release);
        return;
      }
    }
  }
}

/// Null when there is none. A reduction is an object, too, but a group comes first.
const void *CollectiveGroups::groupAmong(const abi::IValue *values, size_t count) const {
  int offset = slots_offset_.load(std::memory_order_acquire);
  uint32_t tag = tag_.load(std::memory_order_relaxed);
  const abi::IValue *end = values + count;
  const abi::IValue *object =
      std::find_if(values, end, [tag](const abi::IValue &each) { return each.tag == tag; });
  if (offset == 0 || object == end) {
    return nullptr;
  }
  const void *slots = abi::readAt<const void *>(object->payload, offset);
  const void *group = slots ? abi::readAt<const void *>(slots, 0) : nullptr;
  bool is_group =
      group && abi::readAt<const void *>(group, 0) == table_.load(std::memory_order_relaxed);
  return is_group ? group : nullptr;
}

GroupIndex CollectiveGroups::indexOf(const void *group) {
  std::lock_guard<SpinLock> guard(lock_);
  GroupIndex index = indexWhere([group](const Identity &each) { return each.address == group; });
  if (!group || index == Collectives::kMostGroups) {
    return kUnknown;
  }
  if (index == count_) {
    groups_[count_++].address = group;
  }
  return index;
}

/// `count_` when there is none. The lock is held.
template <typename Test> GroupIndex CollectiveGroups::indexWhere(const Test &is_it) const {
  const Identity *end = groups_ + count_;
  return static_cast<GroupIndex>(std::find_if(groups_, end, is_it) - groups_);
}

} // namespace deepcontext::torch
