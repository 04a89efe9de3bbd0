#include "core/interner.h"

#include <cstring>

namespace deepcontext {

Interner &Interner::instance() {
  static Interner *const interner = new Interner(); // outlives every callback: never destroyed
  return *interner;
}

std::string withoutNumbers(std::string_view text) {
  std::string out;
  bool is_in_number = false;
  for (char character : text) {
    bool is_digit = character >= '0' && character <= '9';
    if (!is_digit) {
      out += character;
    } else if (!is_in_number) {
      out += 'N';
    }
    is_in_number = is_digit;
  }
  return out;
}

uint32_t Interner::intern(std::string_view text) {
  std::lock_guard<Mutex> lock(mutex_);
  return internLocked(text);
}

uint32_t Interner::internBounded(std::string_view text) {
  std::lock_guard<Mutex> lock(mutex_);
  auto known = ids_.find(text);
  if (known != ids_.end()) {
    return known->second;
  }
  std::string common = withoutNumbers(text);
  if (common != text && isOneOfMany(common)) {
    return internLocked(common);
  }
  if (bytes_ >= most_bytes_) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return internLocked(kOtherNames);
  }
  return internLocked(text);
}

/// Count one more text that differs from `common` in its numbers only.
bool Interner::isOneOfMany(const std::string &common) {
  auto variants = variants_.find(common);
  if (variants == variants_.end()) {
    if (bytes_ >= most_bytes_) {
      return false;
    }
    variants = variants_.emplace(common, 0).first;
    bytes_ += common.size() + kTextBytes;
  }
  return ++variants->second > kMostVariants;
}

uint32_t Interner::internLocked(std::string_view text) {
  auto found = ids_.find(text);
  if (found != ids_.end()) {
    return found->second;
  }
  strings_.emplace_back(text);
  bytes_ += text.size() + kTextBytes;
  uint32_t id = static_cast<uint32_t>(strings_.size() - 1);
  ids_.emplace(strings_.back(), id);
  return id;
}

std::string_view Interner::text(uint32_t id) const {
  std::lock_guard<Mutex> lock(mutex_);
  return strings_[id];
}

uint32_t NameCache::fill(Slot &slot, const char *name) {
  uint64_t hash = hashOf(name);
  Slot &known = by_content_[hash % kSlots];
  if (!known.is_used || !isSame(known, name)) {
    known = slotOf(name, hash);
  }
  slot = known;
  slot.address = name;
  return slot.id;
}

uint64_t NameCache::hashOf(const char *name) {
  return std::hash<std::string_view>()(name);
}

NameCache::Slot NameCache::slotOf(const char *name, uint64_t hash) {
  Interner &interner = Interner::instance();
  Slot slot;
  slot.is_used = true;
  slot.hash = hash;
  slot.id = interner.internBounded(name);
  std::string_view text = interner.text(slot.id);
  size_t length = std::strlen(name);
  if (text == std::string_view(name, length)) {
    slot.content = text.data();
  }
  if (length < kHeadBytes) {
    std::memcpy(slot.head, name, length);
    std::memset(slot.mask, 0xFF, length + 1);
  }
  return slot;
}

} // namespace deepcontext
