// A document as a tree of values, each with the line it was written on: what YAML and JSON readers
// give and writers take.
//
//   doc::Value out = doc::Value::Map();
//   out.Set("cdiVersion", "0.7.0");
//   out.Set("devices", doc::Value::List());
//
// Plain data: copied freely, read by any thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ndp::doc {

// Readers refuse what is nested deeper.
inline constexpr int kMaxDepth = 64;

enum class Kind { kNull, kBool, kInt, kFloat, kString, kList, kMap };

// "a list", "a text": for messages.
std::string_view KindName(Kind kind);

class Value {
 public:
  struct Entry;

  // Out of line, all of them: Entry is not complete here yet, which clang minds.
  Value();  // null
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();
  // Implicit, so that a tree can be written down as it looks.
  Value(bool value);  // NOLINT(google-explicit-constructor)
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Value(T value) : Value(Integer{static_cast<std::int64_t>(value)}) {}  // NOLINT
  Value(double value);                                                  // NOLINT
  Value(std::string value);                                             // NOLINT
  Value(std::string_view value);                                        // NOLINT
  Value(const char* value);                                             // NOLINT
  Value(std::vector<Value> items);                                      // NOLINT

  static Value List();
  static Value Map();

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_list() const { return kind_ == Kind::kList; }
  bool is_map() const { return kind_ == Kind::kMap; }
  bool is_scalar() const { return !is_list() && !is_map(); }

  // From 1; 0 where the value was not read from a text.
  int line() const { return line_; }
  void set_line(int line) { line_ = line; }

  // Nothing where the value is of another kind.
  std::optional<bool> AsBool() const;
  std::optional<std::int64_t> AsInt() const;
  std::optional<double> AsFloat() const;  // an integer too
  std::optional<std::string> AsString() const;

  // A scalar as it was written ("0x10", "yes", "1.50"), else in its usual form; empty for null and
  // for what is no scalar.
  std::string Text() const;
  // The scalar under a key, so; empty where there is none.
  std::string TextAt(std::string_view key) const;
  // How it was written, where Text() is not to be the usual form. For readers.
  void set_source_text(std::string text) { text_ = std::move(text); }

  // Empty where the value is no list.
  const std::vector<Value>& items() const { return items_; }
  std::vector<Value>& items() { return items_; }
  void Append(Value value);

  // In the order written; empty where the value is no map. A key may occur twice: readers keep
  // both, so that their user can say so.
  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<Entry>& entries() { return entries_; }
  // The last entry of that key; nullptr if there is none.
  const Value* Find(std::string_view key) const;
  Value* Find(std::string_view key);
  // Replaces the value of the key, or adds the key at the end. Returns the stored value.
  Value& Set(std::string_view key, Value value);

  // Same data, wherever it was written and however its numbers were spelled.
  friend bool operator==(const Value& a, const Value& b);

 private:
  struct Integer {
    std::int64_t value;
  };
  explicit Value(Integer integer);

  Kind kind_ = Kind::kNull;
  bool bool_ = false;
  int line_ = 0;
  std::int64_t int_ = 0;
  double float_ = 0;
  std::string text_;
  std::vector<Value> items_;
  std::vector<Entry> entries_;
};

struct Value::Entry {
  std::string key;
  int line = 0;  // of the key
  Value value;
};

}  // namespace ndp::doc
