#pragma once
// Keeps exceptions of the profiler from code that is not the profiler's.
#include <atomic>
#include <cstdint>
#include <exception>
#include <type_traits>

namespace deepcontext {

/// Events that were not recorded because memory ran out. Any thread.
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
/// Catches std::exception only, because a thread that the interpreter ends unwinds its stack, too,
/// and must not be held up.
template <typename Work> bool guarded(Work &&work) {
  try {
    work();
    return true;
  } catch (const std::exception &) {
    LostEvents::count();
    return false;
  }
}

/// `Guarded<function>::call` is `function` as foreign code may call it: where memory ran out it
/// returns a value made of nothing.
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
