#pragma once
// Keeps the profiler's exceptions out of foreign code.
#include <atomic>
#include <cstdint>
#include <exception>
#include <type_traits>

namespace deepcontext {

/// Events that were lost because memory ran out. Any thread.
class LostEvents {
public:
  static void count() { count_.fetch_add(1, std::memory_order_relaxed); }
  static uint64_t read() { return count_.load(std::memory_order_relaxed); }
  static void clear() { count_.store(0, std::memory_order_relaxed); }

private:
  static inline std::atomic<uint64_t> count_{0};
};

/// Run a part of a hook. False when memory ran out: what the part recorded is counted as lost.
///
/// Catches std::exception only: a thread that the interpreter ends is unwound as by an exception,
/// which must not be caught.
template <typename Work> bool guarded(Work &&work) {
  try {
    work();
    return true;
  } catch (const std::exception &) {
    LostEvents::count();
    return false;
  }
}

/// `Guarded<function>::call` is `function` for foreign callers. If memory runs out, it returns a
/// value-initialised result.
template <auto function> struct Guarded;

template <typename Result, typename... Arguments, Result (*function)(Arguments...)>
struct Guarded<function> {
  static Result call(Arguments... arguments) {
    try {
      return function(arguments...);
    } catch (const std::exception &) {
      LostEvents::count();
      if constexpr (!std::is_void_v<Result>) {
        return Result();
      }
    }
  }
};

} // namespace deepcontext
