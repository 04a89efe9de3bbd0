#pragma once
// Native functions by the names that Python code calls them by.

namespace deepcontext {

/// Hide the native frames of the interpreter, whose Python frames are shown instead, and of the
/// profiler.
void hideOwnObjects();

/// Name the functions that `unwind::AddressTable` has met since the last call and that Python code
/// can call: "list.insert", "sorted", "_json.Encoder.__call__". The interpreter's static functions
/// have no other names in a stripped build. GIL held; runs no code of the program.
void nameCallables();

} // namespace deepcontext
