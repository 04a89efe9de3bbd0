#pragma once
// Element types of tensors, by number.
#include <cstdint>
#include <iterator>

namespace deepcontext::torch {

/// Source: c10/core/ScalarType.h, whose numbers are part of torch's stable C interface.
struct ElementType {
  const char *name; // short; "" for types whose elements do not take whole bytes of their own
  uint8_t size_bytes;
};

constexpr ElementType kElementTypes[] = {
    {"u8", 1},       {"i8", 1},         {"i16", 2},        {"i32", 4},  {"i64", 8},   {"f16", 2},
    {"f32", 4},      {"f64", 8},        {"c32", 4},        {"c64", 8},  {"c128", 16}, {"bool", 1},
    {"", 0},         {"", 0},           {"", 0},           {"bf16", 2}, {"", 0},      {"", 0},
    {"", 0},         {"", 0},           {"", 0},           {"", 0},     {"", 0},      {"f8e5m2", 1},
    {"f8e4m3fn", 1}, {"f8e5m2fnuz", 1}, {"f8e4m3fnuz", 1}, {"u16", 2},  {"u32", 4},   {"u64", 8},
};

/// The type with this number; without a name where it is not known.
constexpr ElementType elementType(int64_t number) {
  return number >= 0 && number < static_cast<int64_t>(std::size(kElementTypes))
             ? kElementTypes[number]
             : ElementType{"", 0};
}

} // namespace deepcontext::torch
