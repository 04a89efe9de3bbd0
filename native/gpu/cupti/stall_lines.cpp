// Source lines of sampled instructions, from the images of the modules that the program has loaded.
#include <cstdlib>

#include "core/interner.h"
#include "gpu/cupti/stall_sampler.h"

namespace deepcontext::gpu::cupti {

namespace {

constexpr size_t kMostCubinBytes = 64u << 20; // kept for source lines; modules beyond have none

} // namespace

void StallSampler::addModule(const abi::cupti::ModuleData &module) {
  if (!library_.GetCubinCrc || !module.cubin) {
    return;
  }
  abi::cupti::CubinCrcParameters parameters{sizeof parameters, module.cubin_bytes, module.cubin, 0};
  if (library_.GetCubinCrc(&parameters) != abi::cupti::kSuccess) {
    return;
  }
  auto image =
      std::make_shared<const std::vector<char>>(module.cubin, module.cubin + module.cubin_bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  if (cubin_bytes_ + image->size() <= kMostCubinBytes &&
      cubins_.emplace(parameters.crc, image).second) {
    cubin_bytes_ += image->size();
  }
}

StallSampler::Line StallSampler::lineOf(const abi::cupti::PcData &pc) {
  auto [known, is_new] =
      lines_.try_emplace({pc.cubin_crc, pc.function_index, pc.offset}, Line{0, 0});
  if (!is_new || !library_.GetSassToSourceCorrelation) {
    return known->second;
  }
  Image image;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto cubin = cubins_.find(pc.cubin_crc);
    image = cubin == cubins_.end() ? nullptr : cubin->second;
  }
  if (!image) {
    return known->second;
  }
  abi::cupti::SourceParameters parameters{};
  parameters.bytes = sizeof parameters;
  parameters.cubin = image->data();
  parameters.cubin_bytes = image->size();
  parameters.function = pc.function;
  parameters.offset = pc.offset;
  if (library_.GetSassToSourceCorrelation(&parameters) == abi::cupti::kSuccess && parameters.file) {
    std::string folder = parameters.folder ? parameters.folder : "";
    std::string file = folder.empty() ? parameters.file : folder + "/" + parameters.file;
    known->second = {Interner::instance().intern(file), parameters.line};
  }
  std::free(parameters.file);
  std::free(parameters.folder);
  return known->second;
}

} // namespace deepcontext::gpu::cupti
