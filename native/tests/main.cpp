// Runs the cases of the file it is linked with.
#include "tests/check.h"

int main() {
  for (const deepcontext::test::Case &test : deepcontext::test::cases()) {
    int before = deepcontext::test::g_failures.load();
    test.run();
    int failed = deepcontext::test::g_failures.load() - before;
    std::printf("%s %s\n", failed ? "FAILED" : "ok    ", test.name);
  }
  int failures = deepcontext::test::g_failures.load();
  if (deepcontext::test::cases().empty()) {
    std::fprintf(stderr, "this executable has no cases\n");
    return 1;
  }
  return failures == 0 ? 0 : 1;
}
