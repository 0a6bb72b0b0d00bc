#include "base/one_line.h"

#include <fmt/core.h>

#include "base/text.h"

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
    } else if (IsControl(c)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace ndp
