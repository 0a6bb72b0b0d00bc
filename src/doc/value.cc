#include "doc/value.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/result.h"

namespace ndp::doc {

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kBool:
      return "a boolean";
    case Kind::kInt:
    case Kind::kFloat:
      return "a number";
    case Kind::kString:
      return "a text";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
  }
  return "";
}

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

Value::Value(bool value) : kind_(Kind::kBool), bool_(value) {}
Value::Value(Integer integer) : kind_(Kind::kInt), int_(integer.value) {}
Value::Value(double value) : kind_(Kind::kFloat), float_(value) {}
Value::Value(std::string value) : kind_(Kind::kString), text_(std::move(value)) {}
Value::Value(std::string_view value) : Value(std::string(value)) {}
Value::Value(const char* value) : Value(std::string(value)) {}
Value::Value(std::vector<Value> items) : kind_(Kind::kList), items_(std::move(items)) {}

Value Value::List() { return std::vector<Value>(); }

Value Value::Map() {
  Value map;
  map.kind_ = Kind::kMap;
  return map;
}

std::optional<bool> Value::AsBool() const {
  if (kind_ != Kind::kBool) return std::nullopt;
  return bool_;
}

std::optional<std::int64_t> Value::AsInt() const {
  if (kind_ != Kind::kInt) return std::nullopt;
  return int_;
}

std::optional<double> Value::AsFloat() const {
  if (kind_ == Kind::kInt) return static_cast<double>(int_);
  if (kind_ != Kind::kFloat) return std::nullopt;
  return float_;
}

std::optional<std::string> Value::AsString() const {
  if (kind_ != Kind::kString) return std::nullopt;
  return text_;
}

std::string Value::Text() const {
  if (!is_scalar() || is_null()) return {};
  if (kind_ == Kind::kString || !text_.empty()) return text_;
  if (kind_ == Kind::kBool) return bool_ ? "true" : "false";
  if (kind_ == Kind::kInt) return fmt::to_string(int_);
  return fmt::to_string(float_);
}

std::string Value::TextAt(std::string_view key) const {
  const Value* value = Find(key);
  return value != nullptr ? value->Text() : std::string();
}

void Value::Append(Value value) {
  NDP_CHECK(is_list());
  items_.push_back(std::move(value));
}

const Value* Value::Find(std::string_view key) const {
  const auto at = std::ranges::find(entries_.rbegin(), entries_.rend(), key, &Entry::key);
  return at == entries_.rend() ? nullptr : &at->value;
}

Value* Value::Find(std::string_view key) {
  const auto at = std::ranges::find(entries_.rbegin(), entries_.rend(), key, &Entry::key);
  return at == entries_.rend() ? nullptr : &at->value;
}

Value& Value::Set(std::string_view key, Value value) {
  NDP_CHECK(is_map());
  if (Value* found = Find(key)) return *found = std::move(value);
  const int line = value.line();
  return entries_.emplace_back(std::string(key), line, std::move(value)).value;
}

bool operator==(const Value& a, const Value& b) {
  if (a.kind_ != b.kind_) return false;
  switch (a.kind_) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return a.bool_ == b.bool_;
    case Kind::kInt:
      return a.int_ == b.int_;
    case Kind::kFloat:
      return a.float_ == b.float_;
    case Kind::kString:
      return a.text_ == b.text_;
    case Kind::kList:
      return a.items_ == b.items_;
    case Kind::kMap:
      return std::ranges::equal(a.entries_, b.entries_,
                                [](const Value::Entry& x, const Value::Entry& y) {
                                  return x.key == y.key && x.value == y.value;
                                });
  }
  return false;
}

}  // namespace ndp::doc
