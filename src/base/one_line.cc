#include "base/one_line.h"

#include <fmt/core.h>

namespace ndp {

std::string OneLine(std::string_view text) {
  constexpr std::size_t kMost = 4096;
  constexpr std::size_t kEnd = 512;
  if (text.size() > kMost) {
    // No character is cut in two: bytes that continue one are left out with it.
    const auto begins = [text](std::size_t at) { return (text[at] & 0xC0) != 0x80; };
    std::size_t head = kMost - kEnd;
    while (head > 0 && !begins(head)) --head;
    std::size_t tail = text.size() - kEnd;
    while (tail < text.size() && !begins(tail)) ++tail;
    return OneLine(text.substr(0, head)) + "…" + OneLine(text.substr(tail));
  }
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace ndp
