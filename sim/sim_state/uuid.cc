#include "sim_state/uuid.h"

namespace ndp::sim_state {
namespace {

// FNV-1a, then a mixer (SplitMix64's), since FNV alone leaves similar names similar.
std::uint64_t Hash(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325U ^ seed;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100'0000'01B3U;
  }
  hash ^= hash >> 30U;
  hash *= 0xBF58'476D'1CE4'E5B9U;
  hash ^= hash >> 27U;
  hash *= 0x94D0'49BB'1331'11EBU;
  return hash ^ (hash >> 31U);
}

}  // namespace

std::array<std::uint8_t, 16> NameUuid(std::string_view name) {
  std::array<std::uint8_t, 16> uuid{};
  const std::uint64_t halves[2] = {Hash(name, 0), Hash(name, 0x9E37'79B9'7F4A'7C15U)};
  for (unsigned i = 0; i < 16; ++i) {
    uuid[i] = static_cast<std::uint8_t>(halves[i / 8] >> (8 * (i % 8)));
  }
  uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0FU) | 0x50U);
  uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3FU) | 0x80U);
  return uuid;
}

std::string FormatUuid(const std::array<std::uint8_t, 16>& uuid) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[uuid[i] >> 4U];
    text += kDigits[uuid[i] & 0x0FU];
  }
  return text;
}

}  // namespace ndp::sim_state
