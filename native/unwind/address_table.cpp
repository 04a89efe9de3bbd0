#include "unwind/address_table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/interner.h"
#include "core/text.h"
#include "unwind/frame_row.h"
#include "unwind/readable_name.h"
#include "unwind/symbols.h"

namespace deepcontext::unwind {

AddressTable &AddressTable::instance() {
  static AddressTable *const table = new AddressTable(); // never destroyed: outlives every thread
  return *table;
}

KnownAddress AddressTable::lookup(uintptr_t pc) {
  std::lock_guard<Mutex> lock(mutex_);
  auto known = known_.find(pc);
  if (known != known_.end()) {
    return known->second;
  }
  KnownAddress found;
  LoadedObjects::keepLoaded([&] { // else another thread may unload the object
    refreshLocked();
    found = describe(pc);
  });
  return known_.emplace(pc, found).first->second;
}

KnownAddress AddressTable::describe(uintptr_t pc) {
  KnownAddress known;
  known.pc = pc;
  uintptr_t call = pc - 1; // a call may be the last instruction of its function
  const LoadedObject *object = objects_.find(call);
  if (!object) {
    known.function = functionAt(LoadedObjects::kNoFile, 0, ObjectRole::kProgram);
    return known;
  }
  known.role = object->role;
  uintptr_t start = call;
  if (object->eh_frame_hdr) {
    if (auto found =
            findRow(object->eh_frame_hdr, object->eh_frame_segment, call, Processor::kRegisters)) {
      known.rule = Processor::ruleOf(found->row);
      start = found->function_start;
    }
  }
  known.function = functionAt(object->file, start - object->bias, object->role);
  return known;
}

uint32_t AddressTable::functionAt(uint32_t file, uint64_t offset, ObjectRole role) {
  constexpr int kOffsetBits = 44;
  auto [place, is_new] = function_ids_.emplace(static_cast<uint64_t>(file) << kOffsetBits | offset,
                                               static_cast<uint32_t>(functions_.size()));
  if (is_new) {
    functions_.emplace_back();
    functions_.back().file = file;
    functions_.back().offset = offset;
    functions_.back().role = role;
  }
  return place->second;
}

void AddressTable::hide(uintptr_t address) {
  std::lock_guard<Mutex> lock(mutex_);
  objects_.hide(address);
}

void AddressTable::addPlumbing(std::string beginning) {
  std::lock_guard<Mutex> lock(mutex_);
  if (std::find(plumbing_.begin(), plumbing_.end(), beginning) == plumbing_.end()) {
    plumbing_.push_back(std::move(beginning));
  }
}

bool AddressTable::isPlumbing(std::string_view name) const {
  return std::any_of(plumbing_.begin(), plumbing_.end(),
                     [&](const std::string &beginning) { return startsWith(name, beginning); });
}

std::unordered_map<uintptr_t, uint32_t> AddressTable::takeNewAddresses() {
  std::lock_guard<Mutex> lock(mutex_);
  std::unordered_map<uintptr_t, uint32_t> addresses;
  for (const auto &[pc, known] : known_) {
    Function &function = functions_[known.function];
    const LoadedObject *object = function.is_taken ? nullptr : objects_.find(pc - 1);
    if (object) {
      addresses.emplace(object->bias + function.offset, known.function);
      function.is_taken = true;
    }
  }
  return addresses;
}

void AddressTable::setCallable(uint32_t id, std::string_view name) {
  uint32_t interned = Interner::instance().intern(name);
  std::lock_guard<Mutex> lock(mutex_);
  Function &function = functions_[id];
  function.called_as = interned;
  function.is_callable = true;
  if (function.is_named) { // it was first seen while a tree was read
    function.name = interned;
    function.is_plumbing = isPlumbing(name);
  }
}

uint32_t AddressTable::nameOf(const Function &function, const std::string &path,
                              const std::string &symbol) const {
  if (function.is_callable) {
    return function.called_as;
  }
  std::string name = symbol.empty() ? unresolvedName(path, function.offset) : readableName(symbol);
  return Interner::instance().intern(
      function.role == ObjectRole::kThreadStart ? withoutVariant(name) : name);
}

void AddressTable::refresh() {
  std::lock_guard<Mutex> lock(mutex_);
  refreshLocked();
}

void AddressTable::refreshLocked() {
  if (objects_.refresh()) {
    known_.clear();
    epoch_.fetch_add(1, std::memory_order_release);
  }
}

Function AddressTable::function(uint32_t id) {
  {
    std::lock_guard<Mutex> lock(mutex_);
    if (functions_[id].is_named) {
      return functions_[id];
    }
  }
  nameFunctions();
  std::lock_guard<Mutex> lock(mutex_);
  return functions_[id];
}

ObjectFile AddressTable::file(uint32_t id) const {
  std::lock_guard<Mutex> lock(mutex_);
  return objects_.file(id);
}

struct AddressTable::Unnamed {
  ObjectFile file;
  std::vector<uint32_t> ids;
  std::vector<uint64_t> offsets;
};

std::map<uint32_t, AddressTable::Unnamed> AddressTable::unnamed() const {
  std::lock_guard<Mutex> lock(mutex_);
  std::map<uint32_t, Unnamed> by_file;
  for (uint32_t id = 0; id < functions_.size(); ++id) {
    const Function &function = functions_[id];
    if (!function.is_named) {
      Unnamed &unnamed = by_file[function.file];
      unnamed.file = objects_.file(function.file);
      unnamed.ids.push_back(id);
      unnamed.offsets.push_back(function.offset);
    }
  }
  return by_file;
}

void AddressTable::nameFunctions() {
  // Files are read without the lock, because a thread of the program may wait for it.
  for (const auto &[file, unnamed] : unnamed()) {
    std::vector<std::string> symbols =
        symbolsAt(unnamed.file.path, unnamed.file.build_id, unnamed.offsets);
    std::lock_guard<Mutex> lock(mutex_);
    for (size_t i = 0; i < symbols.size(); ++i) {
      Function &function = functions_[unnamed.ids[i]];
      function.name = nameOf(function, unnamed.file.path, symbols[i]);
      function.is_named = true;
      function.is_plumbing = isPlumbing(Interner::instance().text(function.name));
      function.has_symbol = !symbols[i].empty();
    }
  }
}

std::vector<AddressTable::FileUse> AddressTable::files() const {
  std::lock_guard<Mutex> lock(mutex_);
  std::vector<FileUse> uses(objects_.fileCount());
  for (uint32_t i = 0; i < uses.size(); ++i) {
    uses[i].file = objects_.file(i);
  }
  for (const Function &function : functions_) {
    ++uses[function.file].functions;
    uses[function.file].named += function.has_symbol;
  }
  return uses;
}

__attribute__((noinline)) void ReturnAddressCache::fill(Slot &slot, uintptr_t pc) {
  KnownAddress known = AddressTable::instance().lookup(pc);
  slot.pc = pc;
  slot.rule = known.rule;
  slot.rule.tag = static_cast<uint8_t>(known.role) & 7;
  functions_[&slot - slots_.data()] = known.function;
}

bool ReturnAddressCache::refresh() {
  AddressTable &table = AddressTable::instance();
  if (walks_++ % kWalksBetween == 0) {
    table.refresh();
  }
  if (__builtin_expect(epoch_ == table.epoch(), 1)) {
    return false;
  }
  slots_.assign(kSlots, Slot());
  epoch_ = table.epoch();
  return true;
}

} // namespace deepcontext::unwind
