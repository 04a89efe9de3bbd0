#pragma once
// The framework of the native tests: cases that register themselves, checks that continue after a
// failure.
//
// A failed check prints both sides and lets the case continue; the executable then exits with 1.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace deepcontext::test {

struct Case {
  const char *name;
  void (*run)();
};

inline std::vector<Case> &cases() {
  static std::vector<Case> all;
  return all;
}

inline bool add(const char *name, void (*run)()) {
  cases().push_back({name, run});
  return true;
}

/// Failed checks so far; checks may run on any thread.
inline std::atomic<int> g_failures{0};

inline void fail(const char *file, int line, const std::string &what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  g_failures.fetch_add(1);
}

template <typename Left, typename Right>
void checkEqual(const char *file, int line, const char *text, const Left &left,
                const Right &right) {
  if (!(left == right)) {
    std::ostringstream message;
    message << text << ": " << left << " != " << right;
    fail(file, line, message.str());
  }
}

/// Equal within `relative` of the larger side.
inline void checkClose(const char *file, int line, const char *text, double left, double right,
                       double relative) {
  double scale = std::fmax(std::fabs(left), std::fabs(right));
  if (!(std::fabs(left - right) <= relative * scale)) {
    std::ostringstream message;
    message.precision(17);
    message << text << ": " << left << " is not close to " << right;
    fail(file, line, message.str());
  }
}

} // namespace deepcontext::test

#define TEST(name)                                                                                 \
  static void name();                                                                              \
  [[maybe_unused]] static const bool name##_is_registered = deepcontext::test::add(#name, name);   \
  static void name()

#define CHECK(condition)                                                                           \
  ((condition) ? (void)0 : deepcontext::test::fail(__FILE__, __LINE__, "not so: " #condition))

#define CHECK_EQ(left, right)                                                                      \
  deepcontext::test::checkEqual(__FILE__, __LINE__, #left " == " #right, left, right)

#define CHECK_CLOSE(left, right, relative)                                                         \
  deepcontext::test::checkClose(__FILE__, __LINE__, #left " ~ " #right, left, right, relative)
