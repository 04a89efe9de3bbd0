#pragma once
// A parameter type that says that Python's GIL must not be held.

namespace deepcontext {

/// Proof that the calling thread does not hold the GIL. Parameter of functions that wait for a lock
/// which another thread may hold for milliseconds: with the GIL held, the whole program would wait.
/// `withoutGil` in the bindings releases the GIL and makes the proof.
class WithoutGil {
public:
  /// For threads without a Python thread state, and for tests.
  static WithoutGil onForeignThread() { return {}; }

private:
  WithoutGil() = default;
  friend struct GilGivenUp;
};

} // namespace deepcontext
