#pragma once
// Native functions by the names that Python code calls them by.

namespace deepcontext {

/// Hide the native frames of the interpreter, whose Python frames are shown instead, and of the
/// profiler.
void hideOwnObjects();

/// Name the functions in `unwind::AddressTable` that have no name yet and that Python code can
/// call: "list.insert", "builtins.sorted", "_json.Encoder.__call__". The interpreter's static
/// functions have no other names in a stripped build. GIL held; runs no code of the program, and
/// reads nothing if all functions have names.
void nameCallables();

} // namespace deepcontext
