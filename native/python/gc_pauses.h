#pragma once
// The time that Python's garbage collector takes, at the line that it interrupts or that called it.

namespace deepcontext {

/// A function for `gc.callbacks`. GIL held; Python code may run between start and stop of a
/// collection (finalisers), but no other collection begins.
class GcPauses {
public:
  static void started();
  /// Pauses of less than kLeastNs are left out: they would make a node of each line that allocates.
  static void stopped();

private:
  static constexpr double kLeastNs = 20000;
};

} // namespace deepcontext
