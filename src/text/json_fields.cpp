// Reading the files of tokenizers.
#include "text/json_fields.h"

#include <fstream>
#include <vector>

#include "core/error.h"

namespace rlx {

std::string read_bounded_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  require(file.is_open(), "cannot open {}", path.string());
  std::string text;
  std::vector<char> block(1 << 20);
  const std::size_t most = JsonLimits{}.bytes;
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    require(text.size() <= most, "{}: more than {} bytes, the most that are read", path.string(), most);
  }
  require(file.eof(), "cannot read {}", path.string());
  return text;
}

}  // namespace rlx
