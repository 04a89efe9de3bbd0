// Async-signal-safe, the whole file. The handler runs on the sampled thread between any two of its
// instructions, possibly inside malloc, the interpreter, or a hook of the profiler, so it
//
//   - allocates nothing, takes no lock, calls no function that does: what it calls is inline or in
//     this file, except PyGILState_GetThisThreadState and that of the attached thread
//     state (loads, and pthread_getspecific), clock_gettime and `MemoryReader::read` (system
//     calls);
//   - writes only to its own slot, which no other thread uses while it is `kAnswering`;
//   - touches no thread-local memory but the recorder's pointer, which is initial-exec TLS and so
//     needs no allocation;
//   - reads directly only its thread's open levels, which no other thread changes and which are
//     never freed; memory of the interpreter, the thread state included, may be half written or
//     about to be freed and is copied by the kernel (see `PageReader`);
//   - stands on an alternate stack where the program has one, and uses less than 1 KiB of it;
//   - restores errno.
//
// tests/architecture/test_signal_safety.py compares the calls of this object file with this list.
#include "sampling/signal_handler.h"

#include <cerrno>
#include <cstring>
#include <ucontext.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/system_call.h"
#include "core/thread.h"
#include "python/code_table.h"
#include "sampling/frame_sampling.h"

namespace deepcontext {

std::atomic<SampleSlot *> SampleSlots::slots_[SampleSlots::kMost];

namespace {

/// Whether the signal has ended a system call early: the call's result is EINTR, and the thread
/// stands behind the instruction that made the call.
bool hasEndedWait(const ucontext_t &thread, PageReader &memory) {
#if defined(__x86_64__)
  const auto &registers = thread.uc_mcontext.gregs;
  uint8_t call[2] = {};
  return registers[REG_RAX] == -EINTR &&
         memory.copy(reinterpret_cast<const void *>(registers[REG_RIP] - 2), &call) &&
         call[0] == 0x0f && call[1] == 0x05;
#elif defined(__aarch64__)
  const auto &registers = thread.uc_mcontext;
  uint32_t call = 0;
  return static_cast<int64_t>(registers.regs[0]) == -EINTR &&
         memory.copy(reinterpret_cast<const void *>(registers.pc - 4), &call) && call == 0xd4000001;
#else
  return false;
#endif
}

/// Whether the calling thread holds the GIL, of whatever interpreter. PyGILState_Check() does not
/// know: once the program has made a second interpreter, it is true of every thread.
bool holdsGil(PageReader &memory) {
#if PY_VERSION_HEX >= 0x030d0000
  return PyThreadState_GetUnchecked() != nullptr; // of the calling thread
#elif PY_VERSION_HEX >= 0x030c0000
  return _PyThreadState_UncheckedGet() != nullptr;
#else
  const PyThreadState *holder = _PyThreadState_UncheckedGet(); // of any thread, which may end now
  unsigned long thread = 0;
  return holder && memory.copy(&holder->native_thread_id, &thread) &&
         thread == static_cast<unsigned long>(kernelThread());
#endif
}

/// Where the signal has interrupted the thread.
unwind::Registers interruptedAt(const ucontext_t &thread) {
#if defined(__x86_64__)
  const auto &registers = thread.uc_mcontext.gregs;
  return {static_cast<uintptr_t>(registers[REG_RIP]), static_cast<uintptr_t>(registers[REG_RSP]),
          static_cast<uintptr_t>(registers[REG_RBP])};
#elif defined(__aarch64__)
  const auto &registers = thread.uc_mcontext;
  return {registers.pc, registers.sp, registers.regs[29]};
#else
  return {};
#endif
}

void copyStack(SampleSlot *slot, const ucontext_t &thread, const PyThreadState *state) {
  SampledStack &stack = slot->stack;
  slot->context.activation = readActivation(state, slot->reader);
  stack.at = interruptedAt(thread);
  auto end = reinterpret_cast<uintptr_t>(slot->context.activation);
  if (end > stack.at.sp && end - stack.at.sp < SampledStack::kMostBytes) {
    uintptr_t wanted = end - stack.at.sp + SampledStack::kBytesOfCall;
    stack.bytes = slot->reader.copyBytes(stack.at.sp,
                                         static_cast<uint32_t>(wanted < SampledStack::kMostBytes
                                                                   ? wanted
                                                                   : SampledStack::kMostBytes),
                                         stack.content);
  }
}

void answer(SampleSlot *slot, const ucontext_t &thread) {
  SampledContext &context = slot->context;
  slot->wall_ns = clockNs(CLOCK_MONOTONIC);
  slot->cpu_ns = clockNs(CLOCK_THREAD_CPUTIME_ID);
  Recorder *recorder = RecorderRegistry::currentOrNull();
  bool is_recording = recorder && recorder->isOf(RecorderRegistry::generation());
  LevelView levels = is_recording ? recorder->view(ticks()) : LevelView();
  context.recorder = is_recording ? recorder : nullptr;
  context.code_deaths = CodeTable::deaths();
  SampleBoundary boundary = enterLevels(&context, levels);
  const PyThreadState *state = PyGILState_GetThisThreadState();
  context.thread_state = state;
  context.holds_gil = state && holdsGil(slot->reader);
  context.has_ended_wait = hasEndedWait(thread, slot->reader);
  context.frame_count = 0;
  context.is_garbled = false;
  context.activation = nullptr;
  slot->stack.bytes = 0;
  if (state && !levels.is_in_operator && !isFolded(levels)) {
    sampleFrames(&context, state, boundary, slot->reader,
                 is_recording ? &recorder->parked : nullptr);
    if (slot->wants_stack) {
      copyStack(slot, thread, state);
    }
  }
}

void onSampleSignal(int, siginfo_t *info, void *thread) {
  int saved = errno;
  if (info->si_code == SI_QUEUE) { // any other signal is not the sampler's: ignored, as by default
    auto number = static_cast<uint32_t>(info->si_value.sival_int);
    SampleSlot *slot = SampleSlots::at(number);
    uint32_t asked = SampleSlot::kAsked;
    if (slot && slot->state.load(std::memory_order_acquire) == asked &&
        slot->thread.load(std::memory_order_relaxed) == kernelThread() &&
        RecorderRegistry::isRecording() &&
        slot->state.compare_exchange_strong(asked, SampleSlot::kAnswering)) {
      answer(slot, *static_cast<const ucontext_t *>(thread));
      slot->state.store(SampleSlot::kAnswered, std::memory_order_release);
    }
  }
  errno = saved;
}

} // namespace

bool takeSampleSignal() {
  struct sigaction old;
  if (sigaction(kSampleSignal, nullptr, &old) != 0 || old.sa_handler != SIG_DFL) {
    return false;
  }
  struct sigaction ours;
  std::memset(&ours, 0, sizeof ours);
  ours.sa_sigaction = onSampleSignal;
  // Blocked inside the handler (no SA_NODEFER): with many signals the stack would overflow.
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  if (sigaction(kSampleSignal, &ours, &old) != 0) {
    return false;
  }
  if (old.sa_handler != SIG_DFL) { // the program has taken it meanwhile
    sigaction(kSampleSignal, &old, nullptr);
    return false;
  }
  return true;
}

bool ownsSampleSignal() {
  struct sigaction now;
  return sigaction(kSampleSignal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
         now.sa_sigaction == onSampleSignal;
}

void returnSampleSignal() {
  if (ownsSampleSignal()) {
    struct sigaction standard;
    std::memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    sigaction(kSampleSignal, &standard, nullptr);
  }
}

bool askForSample(uint32_t slot_number, int thread) {
  if (!ownsSampleSignal()) { // the program has taken it since the round began, and would receive it
    return false;
  }
  siginfo_t info;
  std::memset(&info, 0, sizeof info);
  info.si_signo = kSampleSignal;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = static_cast<int>(slot_number);
  return systemCall(SYS_rt_tgsigqueueinfo, getpid(), thread, kSampleSignal, &info) == 0;
}

} // namespace deepcontext
