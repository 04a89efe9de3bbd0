#include "gpu/deadline.h"

#include <memory>
#include <thread>
#include <utility>

#include "core/condition.h"
#include "core/internal_thread.h"

namespace deepcontext::gpu {

namespace {

thread_local bool t_is_internal = false;

} // namespace

bool runWithDeadline(const std::function<void()> &work, double seconds) {
  auto done = std::make_shared<Event>();
  std::thread thread = startInternalThread([done, work] {
    Event::SetAtEnd at_end(*done);
    t_is_internal = true;
    work();
  });
  if (!thread.joinable()) {
    OwnCalls own;
    work();
    return true;
  }
  thread.detach();
  return done->waitFor(seconds);
}

void markInternalThread() {
  t_is_internal = true;
}

bool isInternalThread() {
  return t_is_internal;
}

OwnCalls::OwnCalls() : was_internal_(std::exchange(t_is_internal, true)) {}

OwnCalls::~OwnCalls() {
  t_is_internal = was_internal_;
}

} // namespace deepcontext::gpu
