#include "python/location_table.h"

#include <initializer_list>
#include <string>

#include "tests/check.h"

using namespace deepcontext;

// Entry heads: 1, form (4 bits), length - 1 (3 bits).
// Source: CPython, InternalDocs/code_objects.md.

namespace {

std::string table(std::initializer_list<int> bytes) {
  std::string made;
  for (int byte : bytes) {
    made += static_cast<char>(byte);
  }
  return made;
}

constexpr int head(int form, int length) {
  return 0x80 | form << 3 | (length - 1);
}

} // namespace

TEST(an_empty_table_gives_no_line) {
  CHECK_EQ(lineOfInstruction("", 10, 0), 0u);
  CHECK_EQ(lineOfInstruction("", 10, 100), 0u);
}

TEST(short_forms_stay_on_the_line) {
  for (int form = 0; form <= 9; ++form) {
    std::string bytes = table({head(form, 2), 0x35});
    CHECK_EQ(lineOfInstruction(bytes, 7, 0), 7u);
    CHECK_EQ(lineOfInstruction(bytes, 7, 2), 7u);
    CHECK_EQ(lineOfInstruction(bytes, 7, 4), 0u); // past the end
  }
}

TEST(one_line_forms_move_by_zero_one_and_two) {
  std::string bytes = table({head(10, 1), 4, 9, head(11, 1), 4, 9, head(12, 1), 4, 9});
  CHECK_EQ(lineOfInstruction(bytes, 100, 0), 100u);
  CHECK_EQ(lineOfInstruction(bytes, 100, 2), 101u);
  CHECK_EQ(lineOfInstruction(bytes, 100, 4), 103u);
}

TEST(no_column_form_moves_by_a_signed_number) {
  // Signed numbers keep the sign in the lowest bit: 5 is 10, -3 is 7.
  std::string bytes = table({head(13, 1), 10, head(13, 8), 7, head(13, 1), 0});
  CHECK_EQ(lineOfInstruction(bytes, 20, 0), 25u);
  CHECK_EQ(lineOfInstruction(bytes, 20, 2), 22u);
  CHECK_EQ(lineOfInstruction(bytes, 20, 16), 22u); // last unit of the eight
  CHECK_EQ(lineOfInstruction(bytes, 20, 18), 22u);
}

TEST(long_form_skips_its_end_line_and_columns) {
  // +1000 lines is 2000 = 31 * 64 + 16: the lower six bits come first, 0x40 says that more follow.
  std::string bytes = table({head(14, 3), 0x40 | 16, 31, 2, 0x40 | 1, 2, 9, head(0, 1), 0x11});
  CHECK_EQ(lineOfInstruction(bytes, 1, 0), 1001u);
  CHECK_EQ(lineOfInstruction(bytes, 1, 4), 1001u);
  CHECK_EQ(lineOfInstruction(bytes, 1, 6), 1001u);
}

TEST(instructions_without_a_location_have_no_line_and_move_nothing) {
  std::string bytes = table({head(11, 1), 0, 1, head(15, 4), head(11, 1), 0, 1});
  CHECK_EQ(lineOfInstruction(bytes, 50, 0), 51u);
  CHECK_EQ(lineOfInstruction(bytes, 50, 2), 0u);
  CHECK_EQ(lineOfInstruction(bytes, 50, 8), 0u);
  CHECK_EQ(lineOfInstruction(bytes, 50, 10), 52u);
}

TEST(the_widest_numbers_are_read_whole) {
  // 2^31 - 2 lines forward: 6 digits of 6 bits.
  int64_t coded = (INT64_C(1) << 31) - 2;
  coded <<= 1;
  std::string bytes = table({head(13, 1)});
  for (int digit = 0; digit < 6; ++digit) {
    bytes += static_cast<char>((coded & 63) | (digit < 5 ? 0x40 : 0));
    coded >>= 6;
  }
  CHECK_EQ(lineOfInstruction(bytes, 1, 0), 2147483647u);
  bytes += static_cast<char>(head(13, 1));
  bytes += '\3'; // -1
  CHECK_EQ(lineOfInstruction(bytes, 1, 2), 2147483646u);
}

TEST(a_line_before_the_first_is_none) {
  CHECK_EQ(lineOfInstruction(table({head(13, 1), 11}), 1, 0), 0u); // 1 - 5
}

TEST(a_table_that_ends_in_the_middle_is_survived) {
  std::string whole =
      table({head(14, 3), 0x40 | 16, 31, 2, 0x40 | 1, 2, 9, head(13, 1), 0x7F, 0x7F});
  for (size_t length = 0; length <= whole.size(); ++length) {
    for (uint32_t offset = 0; offset < 20; offset += 2) {
      lineOfInstruction(std::string_view(whole).substr(0, length), 1, offset);
    }
  }
  std::string endless(100'000, '\x7F'); // a number that never ends
  endless[0] = static_cast<char>(head(13, 1));
  CHECK_EQ(lineOfInstruction(endless, 1, 1000), 0u);
}

TEST(line_moves_that_do_not_fit_are_survived) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) { // each adds almost 2^31
    bytes += static_cast<char>(head(13, 1));
    bytes += "\x7E\x7F\x7F\x7F\x7F\x03";
  }
  for (uint32_t offset = 0; offset < 16; offset += 2) {
    lineOfInstruction(bytes, 2147483647, offset); // UBSan watches
  }
  CHECK_EQ(lineOfInstruction(bytes, 1, 16), 0u);
}
