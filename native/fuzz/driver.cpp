// Runs a fuzz target where libFuzzer is absent: damages files of the folders named, for as long as
// `-max_total_time=` says. An input that fails is written to `-artifact_prefix=`, as libFuzzer
// does. A file instead of a folder is run as it is.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include "fuzz/target.h"

// Null where `make native-test` builds the targets without sanitizers, to see that they still
// compile.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Bytes = std::vector<uint8_t>;

constexpr unsigned kMostSeconds = 60; // of one input
Bytes g_input;
std::string g_prefix;

void keepInput() {
  std::ofstream(g_prefix + "crash", std::ios::binary)
      .write(reinterpret_cast<const char *>(g_input.data()),
             static_cast<std::streamsize>(g_input.size()));
}

void onSignal(int number) {
  keepInput();
  signal(number, SIG_DFL);
  raise(number);
}

Bytes read(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

class Mutator {
public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  Bytes damaged(const std::vector<Bytes> &corpus) {
    Bytes bytes = corpus[below(corpus.size())];
    for (size_t i = size_t{1} << below(5); i > 0; --i) {
      mutate(&bytes, corpus[below(corpus.size())]);
    }
    return bytes;
  }

private:
  size_t below(size_t end) { return end == 0 ? 0 : random_() % end; }

  void mutate(Bytes *bytes, const Bytes &other) {
    size_t at = below(bytes->size());
    size_t length = std::min(size_t{1} << below(8), bytes->size() - at);
    auto place = bytes->begin() + static_cast<std::ptrdiff_t>(at);
    auto end = place + static_cast<std::ptrdiff_t>(length);
    size_t from = below(other.size());
    auto source = other.begin() + static_cast<std::ptrdiff_t>(from);
    auto source_end =
        source + static_cast<std::ptrdiff_t>(std::min(size_t{1} << below(12), other.size() - from));
    constexpr uint8_t kOdd[] = {0, 1, 0x7F, 0x80, 0xFF};
    switch (below(7)) {
    case 0:
      bytes->resize(at); // cut
      break;
    case 1:
      bytes->erase(place, end);
      break;
    case 2:
      bytes->insert(place, source, source_end); // splice
      break;
    case 3:
      std::fill(place, end, kOdd[below(std::size(kOdd))]); // lengths and counts among them
      break;
    case 4:
      if (length > 0) {
        *place = static_cast<uint8_t>(*place + (below(2) ? 1 : -1));
      }
      break;
    case 5:
      if (length > 0) {
        *place = static_cast<uint8_t>(random_());
      }
      break;
    default:
      if (length > 0) {
        *place = static_cast<uint8_t>(*place ^ (1u << below(8)));
      }
    }
  }

  std::mt19937 random_;
};

} // namespace

int main(int count, char **words) {
  std::vector<Bytes> corpus;
  long seconds = 60;
  for (int i = 1; i < count; ++i) {
    std::string word = words[i];
    if (word.rfind("-max_total_time=", 0) == 0) {
      seconds = std::stol(word.substr(word.find('=') + 1));
    } else if (word.rfind("-artifact_prefix=", 0) == 0) {
      g_prefix = word.substr(word.find('=') + 1);
    } else if (std::filesystem::is_directory(word)) {
      for (const auto &entry : std::filesystem::directory_iterator(word)) {
        corpus.push_back(read(entry.path()));
      }
    } else if (word[0] != '-') {
      g_input = read(word);
      LLVMFuzzerTestOneInput(g_input.data(), g_input.size());
      return 0;
    }
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "the folders hold no input\n");
    return 1;
  }
  if (__sanitizer_set_death_callback) {
    __sanitizer_set_death_callback(keepInput);
  }
  signal(SIGABRT, onSignal);
  signal(SIGALRM, onSignal);
  uint32_t seed = std::random_device()();
  Mutator mutator(seed);
  uint64_t runs = 0;
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (; std::chrono::steady_clock::now() < until; ++runs) {
    g_input = runs < corpus.size() ? corpus[runs] : mutator.damaged(corpus);
    alarm(kMostSeconds);
    LLVMFuzzerTestOneInput(g_input.data(), g_input.size());
  }
  std::fprintf(stderr, "Done %llu runs of %zu files, seed %u\n",
               static_cast<unsigned long long>(runs), corpus.size(), seed);
  return 0;
}
