// The locks of the fake driver and the fake CUPTI: what deadlocks on hardware does so here, and says so.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <pthread.h>

#include "cupti_device.h"

namespace fake::cupti {

namespace {

constexpr time_t kPatienceS = 2;

struct Locks {
  pthread_rwlock_t driver;
  pthread_mutex_t cupti = PTHREAD_MUTEX_INITIALIZER;
  std::mutex mutex; // of the rest
  uint32_t clients_inside = 0;
  uint64_t concurrent = 0;

  Locks() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    // Who wants to write is not passed by readers for ever.
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&driver, &attributes);
    pthread_rwlockattr_destroy(&attributes);
  }
};

Locks &locks() {
  static Locks *const locks = new Locks();
  return *locks;
}

thread_local uint32_t t_depth = 0; // of calls of the driver
thread_local uint32_t t_client = 0;

template <typename Lock> void lockOrEnd(const char *what, Lock lock) {
  timespec end{};
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += kPatienceS;
  if (lock(&end) != 0) {
    std::fprintf(stderr, "fake CUPTI: deadlock: a thread waits for %s for %d s\n", what,
                 static_cast<int>(kPatienceS));
    std::abort();
  }
}

void lockCupti() {
  lockOrEnd("CUPTI's lock",
            [](const timespec *end) { return pthread_mutex_timedlock(&locks().cupti, end); });
}

} // namespace

DriverLock::DriverLock(For purpose) : is_taken_(t_depth++ == 0 || purpose == For::kWriting) {
  if (is_taken_ && purpose == For::kReading) {
    lockOrEnd("the driver's lock", [](const timespec *end) {
      return pthread_rwlock_timedrdlock(&locks().driver, end);
    });
  } else if (is_taken_) { // inside a call of the driver, the thread waits for itself
    lockOrEnd("the driver's lock, to write", [](const timespec *end) {
      return pthread_rwlock_timedwrlock(&locks().driver, end);
    });
  }
}

DriverLock::~DriverLock() {
  --t_depth;
  if (is_taken_) {
    pthread_rwlock_unlock(&locks().driver);
  }
}

void touchCuptiLock() {
  if (t_client == 0) {
    lockCupti();
    pthread_mutex_unlock(&locks().cupti);
  }
}

ClientCall::ClientCall() : is_outermost_(t_client++ == 0) {
  if (is_outermost_) {
    std::lock_guard<std::mutex> lock(locks().mutex);
    if (locks().clients_inside++ > 0) {
      std::fprintf(stderr, "fake CUPTI: misuse: two calls of the client at once\n");
      ++locks().concurrent;
    }
  }
}

ClientCall::~ClientCall() {
  --t_client;
  if (is_locked_) {
    pthread_mutex_unlock(&locks().cupti);
  }
  if (is_outermost_) {
    std::lock_guard<std::mutex> lock(locks().mutex);
    --locks().clients_inside;
  }
}

void ClientCall::lock() {
  if (is_outermost_) {
    lockCupti();
    is_locked_ = true;
  }
}

uint64_t concurrentClientCalls() {
  std::lock_guard<std::mutex> lock(locks().mutex);
  return locks().concurrent;
}

void resetLocks() {
  std::lock_guard<std::mutex> lock(locks().mutex);
  locks().concurrent = 0;
}

} // namespace fake::cupti
