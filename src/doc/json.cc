#include "doc/json.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

namespace ndp::doc {
namespace {

struct Lines {
  int current = 1;
  int last_token = 1;  // of the last character that was no blank
};

// nlohmann's events carry no position, so the text is read through an iterator that counts. The
// lexer looks one character ahead only behind numbers, and a blank there does not move last_token.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Lines* lines) : at_(at), lines_(lines) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') {
      ++lines_->current;
    } else if (*at_ != ' ' && *at_ != '\t' && *at_ != '\r') {
      lines_->last_token = lines_->current;
    }
    ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  Lines* lines_;
};

class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(const Lines& lines) : lines_(lines) {}

  bool null() override { return Add({}); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(std::int64_t value) override { return Add(value); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return Add(static_cast<double>(value));
    }
    return Add(value);
  }
  bool number_float(double value, const std::string& text) override {
    Value number(value);
    number.set_source_text(text);
    return Add(std::move(number));
  }
  bool string(std::string& value) override { return Add(std::move(value)); }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return Open(Value::Map()); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t /*size*/) override { return Open(Value::List()); }
  bool end_array() override { return Close(); }
  bool key(std::string& key) override {
    open_.back().entries().push_back({std::move(key), lines_.last_token, {}});
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: <what was wrong>"
    std::string what = error.what();
    if (const auto at = what.find("column "); at != std::string::npos) {
      if (const auto colon = what.find(": ", at); colon != std::string::npos) {
        what.erase(0, colon + 2);
      }
    }
    Refuse(what);
    return false;
  }

  Result<Value> Take() {
    if (error_) return *error_;
    return std::move(root_);
  }

 private:
  void Refuse(std::string_view what) {
    error_ = Error(Code::kInvalidArgument, fmt::format("line {}: {}", lines_.last_token, what));
  }
  bool Add(Value value) {
    value.set_line(lines_.last_token);
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      Put(std::move(value));
    }
    return true;
  }
  bool Open(Value value) {
    if (std::ssize(open_) >= kMaxDepth) {
      Refuse(fmt::format("nested more than {} deep", kMaxDepth));
      return false;
    }
    value.set_line(lines_.last_token);
    open_.push_back(std::move(value));
    return true;
  }
  bool Close() {
    Value done = std::move(open_.back());
    open_.pop_back();
    if (open_.empty()) {
      root_ = std::move(done);
    } else {
      Put(std::move(done));
    }
    return true;
  }
  void Put(Value value) {
    if (open_.back().is_list()) {
      open_.back().Append(std::move(value));
    } else {
      open_.back().entries().back().value = std::move(value);
    }
  }

  const Lines& lines_;
  Value root_;
  std::vector<Value> open_;
  std::optional<Error> error_;
};

nlohmann::ordered_json ToNlohmann(const Value& value) {
  switch (value.kind()) {
    case Kind::kNull:
      return nullptr;
    case Kind::kBool:
      return *value.AsBool();
    case Kind::kInt:
      return *value.AsInt();
    case Kind::kFloat:
      return *value.AsFloat();
    case Kind::kString:
      return *value.AsString();
    case Kind::kList: {
      auto list = nlohmann::ordered_json::array();
      for (const Value& item : value.items()) list.push_back(ToNlohmann(item));
      return list;
    }
    case Kind::kMap: {
      auto map = nlohmann::ordered_json::object();
      for (const Value::Entry& entry : value.entries()) map[entry.key] = ToNlohmann(entry.value);
      return map;
    }
  }
  return nullptr;
}

}  // namespace

Result<Value> ParseJson(std::string_view text) {
  Lines lines;
  Builder builder(lines);
  const char* begin = text.data();
  nlohmann::json::sax_parse(CountingIterator(begin, &lines),
                            CountingIterator(begin + text.size(), &lines), &builder);
  return builder.Take();
}

std::string ToJson(const Value& value, int indent) {
  return ToNlohmann(value).dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ndp::doc
