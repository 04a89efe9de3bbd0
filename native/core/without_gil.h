#pragma once
// Says in the type of a function that Python's GIL must not be held.

namespace deepcontext {

/// Proof that the calling thread does not hold the GIL. A function that waits for a lock which
/// another thread may hold for milliseconds asks for one: with the GIL held, the program would
/// stand still meanwhile. `withoutGil` in the bindings gives the GIL up and makes the proof.
class WithoutGil {
public:
  /// For threads that Python knows nothing of, and for tests.
  static WithoutGil onForeignThread() { return {}; }

private:
  WithoutGil() = default;
  friend struct GilGivenUp;
};

} // namespace deepcontext
