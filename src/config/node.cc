#include "config/node.h"

#include <fmt/format.h>

#include "base/text.h"

namespace ndp::config {

Result<Node> Node::At(std::string_view key) const {
  std::string path = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  if (!set()) return Node(nullptr, std::move(path), line_);
  if (!value_->is_map()) return WrongType("a map");
  for (const doc::Value::Entry& entry : value_->entries()) {
    if (entry.key == key) return Node(&entry.value, std::move(path), entry.line);
  }
  return Node(nullptr, std::move(path), line_);
}

Result<Node> Node::Find(std::string_view dotted) const {
  Node at = *this;
  for (std::string_view key : Split(dotted, '.')) {
    NDP_TRY(at, at.At(key));
  }
  return at;
}

Result<std::vector<Node>> Node::Items() const {
  std::vector<Node> nodes;
  if (!set()) return nodes;
  if (!value_->is_list()) return WrongType("a list");
  for (std::size_t i = 0; i < value_->items().size(); ++i) {
    const doc::Value& item = value_->items()[i];
    nodes.emplace_back(&item, fmt::format("{}[{}]", path_, i), item.line());
  }
  return nodes;
}

Result<std::string> Node::Text() const {
  if (!set() || !value_->is_scalar() || value_->kind() == doc::Kind::kBool) {
    return WrongType("a text");
  }
  return value_->Text();
}

Result<bool> Node::Bool() const {
  if (set()) {
    if (const auto value = value_->AsBool()) return *value;
  }
  return WrongType("true or false");
}

Result<std::int64_t> Node::Int() const {
  if (set()) {
    if (const auto value = value_->AsInt()) return *value;
  }
  return WrongType("a whole number");
}

Error Node::Bad(std::string_view message) const {
  const std::string at = path_.empty() ? fmt::format("line {}", line_) : where().Text();
  return {Code::kInvalidArgument, fmt::format("{}: {}", at, message)};
}

Error Node::WrongType(std::string_view want) const {
  if (value_ == nullptr) return Bad(fmt::format("missing: want {}", want));
  std::string got(doc::KindName(value_->kind()));
  if (value_->is_scalar() && !value_->is_null()) {
    got += value_->kind() == doc::Kind::kString ? fmt::format(" \"{}\"", value_->Text())
                                                : fmt::format(" ({})", value_->Text());
  }
  return Bad(fmt::format("want {}, got {}", want, got));
}

}  // namespace ndp::config
