#pragma once
// Arrays that take memory as they are used, and give it back.
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

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

/// Takes large blocks from the kernel: what `reserve` sets aside takes no memory until it is
/// written, and all of it goes back with the vector, where malloc would keep it for the program.
template <typename Value> struct PageAllocator {
  using value_type = Value;
  static constexpr size_t kSmallBytes = 64 << 10;

  PageAllocator() = default;
  template <typename Other> PageAllocator(const PageAllocator<Other> &) {}
  Value *allocate(size_t count) {
    size_t bytes = count * sizeof(Value);
    return static_cast<Value *>(bytes < kSmallBytes ? ::operator new(bytes) : mapZeroPages(bytes));
  }
  void deallocate(Value *begin, size_t count) {
    size_t bytes = count * sizeof(Value);
    if (bytes < kSmallBytes) {
      ::operator delete(begin);
    } else {
      unmapPages(begin, bytes);
    }
  }
  friend bool operator==(const PageAllocator &, const PageAllocator &) { return true; }
  friend bool operator!=(const PageAllocator &, const PageAllocator &) { return false; }
};

/// One value for each node of a tree.
template <typename Value> using Column = std::vector<Value, PageAllocator<Value>>;

} // namespace deepcontext
