// A C++ library of known depth: each function calls the next, the last one the work it was given.
#include <cstdint>
#include <thread>

namespace chain {

using Work = void (*)(const void *, uint64_t, uint64_t);

volatile int g_after = 0;

/// Code after a call keeps the call from becoming a jump, which leaves no frame.
#define CHAIN_LINK __attribute__((noinline))
#define CHAIN_AFTER chain::g_after = chain::g_after + 1

namespace {

#ifdef CHAIN_OTHER // the same functions with other frames
CHAIN_LINK void inner(Work work, const void *a, uint64_t b, uint64_t c) {
  volatile char room[1000];
  room[b % 1000] = 0;
  work(a, b, c);
  CHAIN_AFTER;
}
#else
CHAIN_LINK void inner(Work work, const void *a, uint64_t b, uint64_t c) {
  work(a, b, c);
  CHAIN_AFTER;
}

#endif

template <typename Number> CHAIN_LINK void convert(Work work, const void *a, Number b, Number c) {
  inner(work, a, b, c);
  CHAIN_AFTER;
}

} // namespace

struct Middle {
  CHAIN_LINK void run(Work work, const void *a, uint64_t b, uint64_t c) const {
    convert<uint64_t>(work, a, b, c);
    CHAIN_AFTER;
  }
};

CHAIN_LINK void deep(int depth, Work work, const void *a, uint64_t b, uint64_t c) {
  if (depth == 0) {
    work(a, b, c);
  } else {
    deep(depth - 1, work, a, b, c);
  }
  CHAIN_AFTER;
}

} // namespace chain

#define CHAIN_API extern "C" __attribute__((visibility("default"), noinline))

CHAIN_API void chain_outer(chain::Work work, const void *a, uint64_t b, uint64_t c) {
  chain::Middle().run(work, a, b, c);
  CHAIN_AFTER;
}

/// The same `depth` functions deep.
CHAIN_API void chain_deep(int depth, chain::Work work, const void *a, uint64_t b, uint64_t c) {
  chain::deep(depth, work, a, b, c);
  CHAIN_AFTER;
}

/// The same on a thread that Python knows nothing of.
CHAIN_API void chain_thread(chain::Work work, const void *a, uint64_t b, uint64_t c) {
  std::thread([=] { chain_outer(work, a, b, c); }).join();
}
