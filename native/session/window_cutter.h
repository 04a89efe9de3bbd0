#pragma once
// The thread that cuts the run into windows, beside the program.
#include <atomic>
#include <cstdint>
#include <thread>

#include "python/fork_pause.h"

namespace deepcontext {

/// Sleeps until a step asks for a cut (core/steps.h), and cuts (core/windows.h); takes no GIL. Like
/// the watcher, it ends before a fork made by Python. The functions are called with the GIL held,
/// which is given up while the thread ends: a cut takes some milliseconds.
class WindowCutter final : public PausableThread {
public:
  static WindowCutter &instance();

  void start();
  void stop();
  bool isStarted() const override { return is_started_; }
  void pause() override;
  void resume() override;
  /// Whether its thread could not be started: the run then has no windows.
  bool isRefused() const { return is_refused_; }
  /// In a forked child: no thread. Async-signal-safe.
  void abandonInChild();

private:
  WindowCutter();
  void run(uint32_t turn);
  void join();

  std::thread thread_;
  std::atomic<uint32_t> turn_{0}; // of the thread that should run; others end when they see it
  bool is_started_ = false;
  bool is_refused_ = false;
};

} // namespace deepcontext
