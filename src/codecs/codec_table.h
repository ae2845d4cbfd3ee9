// All codec folders (generated from src/codecs/).
#pragma once

#include <span>

#include "codecs/codec.h"

namespace rlx {

using CodecFolder = std::span<const Codec> (*)();
/// One row a folder under src/codecs.
std::span<const CodecFolder> codec_folders();

}  // namespace rlx
