// Text and number parsing that the standard library lacks. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ndp {

std::string_view Trim(std::string_view text);
std::vector<std::string_view> Split(std::string_view text, char separator);
std::string Join(std::span<const std::string> parts, std::string_view separator);
std::string ToLower(std::string_view text);
bool EqualsIgnoreCase(std::string_view a, std::string_view b);

// One that a terminal acts on, or that ends a line.
constexpr bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

// The whole text must be the number; no sign, no blanks.
std::optional<std::uint64_t> ParseUnsigned(std::string_view text);
std::optional<std::int64_t> ParseSigned(std::string_view text);
// With an optional 0x.
std::optional<std::uint64_t> ParseHex(std::string_view text);

// `*` stands for any run of characters; nothing else is special.
bool WildcardMatch(std::string_view pattern, std::string_view text);

// The candidate with the smallest edit distance (ignoring case), if it is near enough to be a
// likely typing error; for "did you mean".
std::optional<std::string_view> Nearest(std::string_view text,
                                        std::span<const std::string_view> among);

// A DNS-1123 subdomain as Kubernetes defines it: lower case alphanumerics, '-' and '.', each label
// beginning and ending with an alphanumeric, at most 253 characters.
bool IsDns1123Subdomain(std::string_view text);

// "00000000:07:00.0", "0000:07:00.0" and "07:00.0" are one device: lower case, 4-digit domain
// (8 where the domain needs it). nullopt where the text is no PCI address.
std::optional<std::string> NormalizePciBusId(std::string_view text);

}  // namespace ndp
