#include "sampling/thread_account.h"

#include <algorithm>

namespace deepcontext {

namespace {

int64_t between(uint64_t earlier, uint64_t later) {
  return static_cast<int64_t>(later - earlier);
}

uint64_t takeAll(int64_t *owed) {
  auto taken = static_cast<uint64_t>(std::max<int64_t>(*owed, 0));
  *owed = std::min<int64_t>(*owed, 0);
  return taken;
}

} // namespace

void ThreadAccount::split(bool is_running) {
  int64_t other = other_ns_;
  if (other <= 0) {
    return; // an operator ended between two readings; the next interval makes up for it
  }
  int64_t most = std::min(most_cpu_ns_, other);
  int64_t cpu = is_running ? most : std::clamp<int64_t>(least_cpu_ns_, 0, most);
  cpu_ns_ += cpu;
  wait_ns_ += other - cpu;
  other_ns_ = least_cpu_ns_ = most_cpu_ns_ = 0;
}

ChargedTime ThreadAccount::charge(SampleKind kind, const ThreadClocks &now) {
  int64_t elapsed = between(last_.wall_ns, now.wall_ns);
  int64_t in_operators = between(last_.operator_ns, now.operator_ns);
  int64_t cpu = between(last_.cpu_ns, now.cpu_ns);
  other_ns_ += elapsed - in_operators;
  least_cpu_ns_ += std::max<int64_t>(cpu - in_operators, 0);
  most_cpu_ns_ += cpu;
  last_ = now;
  ChargedTime charged;
  if (kind == SampleKind::kInOperator) {
    return charged;
  }
  bool is_running = kind == SampleKind::kRunning;
  split(is_running);
  samples_since_running_ = is_running ? 0 : samples_since_running_ + 1;
  samples_since_waiting_ = is_running ? samples_since_waiting_ + 1 : 0;
  uint32_t patience = kind == SampleKind::kReady ? kMostSamplesReady : kMostSamples;
  if (is_running || samples_since_running_ >= patience) {
    charged.cpu_ns = takeAll(&cpu_ns_);
  }
  if (!is_running || samples_since_waiting_ >= kMostSamples) {
    charged.wait_ns = takeAll(&wait_ns_);
  }
  return charged;
}

ChargedTime ThreadAccount::settle() {
  split(true);
  return {takeAll(&cpu_ns_), takeAll(&wait_ns_)};
}

} // namespace deepcontext
