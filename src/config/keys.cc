#include "config/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/text.h"
#include "config/option.h"

namespace ndp::config {
namespace {

// What may stand under a key: entries by name, or the elements of a list (under "[]").
struct Known {
  std::map<std::string, std::unique_ptr<Known>, std::less<>> children;

  Known* Find(std::string_view name) const {
    const auto at = children.find(name);
    return at == children.end() ? nullptr : at->second.get();
  }
};

void Insert(Known& root, std::string_view path) {
  Known* at = &root;
  const auto step = [&at](std::string_view name) {
    auto& child = at->children[std::string(name)];
    if (child == nullptr) child = std::make_unique<Known>();
    at = child.get();
  };
  for (std::string_view part : Split(path, '.')) {
    const bool list = part.ends_with("[]");
    if (list) part.remove_suffix(2);
    step(part);
    if (list) step("[]");
  }
}

const Known& KnownKeys() {
  static const Known* const known = [] {
    auto* root = new Known;  // lives as long as the program
    for (const Option& option : AllOptions()) {
      if (!option.key.empty()) Insert(*root, option.key);
    }
    for (std::string_view key : StructuredKeys()) Insert(*root, key);
    return root;
  }();
  return *known;
}

// The first known key path that ends in `name`: for keys put under the wrong parent.
std::string_view FindElsewhere(std::string_view name) {
  const auto ends_in_name = [name](std::string_view path) {
    return EqualsIgnoreCase(Split(path, '.').back(), name);
  };
  for (const Option& option : AllOptions()) {
    if (!option.key.empty() && ends_in_name(option.key)) return option.key;
  }
  for (std::string_view path : StructuredKeys()) {
    if (ends_in_name(path)) return path;
  }
  return {};
}

class Walk {
 public:
  explicit Walk(KeyFindings& out) : out_(out) {}

  void Visit(doc::Value& value, const Known& known, const std::string& path) {
    if (value.is_list()) {
      const Known* element = known.Find("[]");
      if (element == nullptr) return;
      for (std::size_t i = 0; i < value.items().size(); ++i) {
        Visit(value.items()[i], *element, fmt::format("{}[{}]", path, i));
      }
    } else if (value.is_map() && !known.children.empty()) {
      VisitMap(value, known, path);
    }
  }

 private:
  void VisitMap(doc::Value& map, const Known& known, const std::string& path) {
    std::vector<doc::Value::Entry> kept;
    for (doc::Value::Entry& entry : map.entries()) {
      const std::string here = path.empty() ? entry.key : fmt::format("{}.{}", path, entry.key);
      const std::string name = Resolve(entry, known, here);
      if (name.empty()) continue;
      entry.key = name;
      const std::string full = path.empty() ? name : fmt::format("{}.{}", path, name);
      const auto earlier = std::ranges::find(kept, name, &doc::Value::Entry::key);
      if (earlier != kept.end()) {
        out_.warnings.push_back(
            fmt::format("{} is given twice (lines {} and {}): the last one counts", full,
                        earlier->line, entry.line));
        kept.erase(earlier);
      }
      Visit(entry.value, *known.Find(name), full);
      kept.push_back(std::move(entry));
    }
    map.entries() = std::move(kept);
  }

  // The known key that is meant, or empty.
  std::string Resolve(const doc::Value::Entry& entry, const Known& known, const std::string& here) {
    if (entry.key != "[]" && known.Find(entry.key) != nullptr) return entry.key;
    std::vector<std::string_view> names;
    for (const auto& [name, child] : known.children) {
      if (name != "[]") names.push_back(name);
    }
    for (std::string_view name : names) {
      if (!EqualsIgnoreCase(name, entry.key)) continue;
      out_.warnings.push_back(
          fmt::format("{} (line {}) is read as {}: write it so", here, entry.line, name));
      return std::string(name);
    }
    std::string message = fmt::format("unknown key {} (line {})",
                                      entry.key.empty() ? here + "\"\"" : here, entry.line);
    if (const auto nearest = Nearest(entry.key, names)) {
      const std::string_view parent =
          std::string_view(here).substr(0, here.size() - entry.key.size());
      message += fmt::format(": did you mean {}{}?", parent, *nearest);
    } else if (const auto elsewhere = FindElsewhere(entry.key); !elsewhere.empty()) {
      message += fmt::format(": did you mean {}?", elsewhere);
    } else {
      message += fmt::format(": known here are {}", fmt::join(names, ", "));
    }
    out_.unknown.push_back(std::move(message));
    return {};
  }

  KeyFindings& out_;
};

}  // namespace

KeyFindings CanonicalizeKeys(doc::Value& root) {
  KeyFindings out;
  Walk(out).Visit(root, KnownKeys(), "");
  return out;
}

}  // namespace ndp::config
