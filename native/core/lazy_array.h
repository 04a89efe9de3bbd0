#pragma once
// Arrays that take memory as they are used.
#include <cstddef>
#include <type_traits>
#include <utility>

namespace deepcontext {

/// Throws std::bad_alloc when the kernel has no memory.
void *mapZeroPages(size_t bytes);
void unmapPages(void *begin, size_t bytes);

/// A fixed number of elements, initially zero bytes, mapped from the kernel: a page takes no memory
/// until it is written. For arrays that each thread needs at the size of the worst case.
///
/// Elements are neither constructed nor destroyed: zero bytes must be a value of the type.
template <typename Value> class LazyArray {
  static_assert(std::is_trivially_destructible_v<Value>);

public:
  explicit LazyArray(size_t count)
      : values_(static_cast<Value *>(mapZeroPages(count * sizeof(Value)))), count_(count) {}
  ~LazyArray() { unmapPages(values_, count_ * sizeof(Value)); }
  LazyArray(LazyArray &&other) noexcept
      : values_(std::exchange(other.values_, nullptr)), count_(other.count_) {}
  LazyArray(const LazyArray &) = delete;
  LazyArray &operator=(const LazyArray &) = delete;

  Value &operator[](size_t position) { return values_[position]; }
  const Value &operator[](size_t position) const { return values_[position]; }
  Value *data() { return values_; }
  const Value *data() const { return values_; }
  size_t size() const { return count_; }

private:
  Value *values_ = nullptr;
  size_t count_;
};

} // namespace deepcontext
