#include "doc/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "base/text.h"

namespace ndp::doc {
namespace {

// Aliases can make a few lines expand without end.
constexpr int kMaxValues = 50'000;
constexpr std::size_t kMaxText = std::size_t{16} << 20;  // in bytes

int LineOf(const YAML::Mark& mark) { return mark.line < 0 ? 0 : mark.line + 1; }

class Reader {
 public:
  Result<Value> Read(const YAML::Node& node, int depth) {
    const int line = LineOf(node.Mark());
    if (depth > kMaxDepth) return Refuse(line, fmt::format("nested more than {} deep", kMaxDepth));
    if (++values_ > kMaxValues) {
      return Refuse(line, fmt::format("expands to more than {} values", kMaxValues));
    }
    Value value;
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        break;
      case YAML::NodeType::Scalar: {
        NDP_TRY(value, ReadScalar(node, line));
        break;
      }
      case YAML::NodeType::Sequence:
        value = Value::List();
        for (const YAML::Node& item : node) {
          NDP_TRY(Value read, Read(item, depth + 1));
          value.Append(std::move(read));
        }
        break;
      case YAML::NodeType::Map: {
        NDP_TRY(value, ReadMap(node, depth));
        break;
      }
    }
    value.set_line(line);
    return value;
  }

 private:
  static Error Refuse(int line, std::string_view what) {
    return {Code::kInvalidArgument, fmt::format("line {}: {}", line, what)};
  }

  Result<Value> ReadScalar(const YAML::Node& node, int line) {
    text_ += node.Scalar().size();
    if (text_ > kMaxText) {
      return Refuse(line, fmt::format("expands to more than {} MiB", kMaxText >> 20));
    }
    // No setting has one, and what reads a path or a name would end at it.
    if (node.Scalar().contains('\0')) return Refuse(line, "a text with a NUL character");
    // yaml-cpp's tag: "?" plain, "!" quoted, else what was written.
    const std::string& tag = node.Tag();
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return node.Scalar();
    return ResolvePlainScalar(node.Scalar());
  }

  Result<Value> ReadMap(const YAML::Node& node, int depth) {
    Value map = Value::Map();
    std::vector<Value> merged;
    for (const auto& pair : node) {
      const int line = LineOf(pair.first.Mark());
      if (!pair.first.IsScalar() && !pair.first.IsNull()) {
        return Refuse(line, "a key must be a text");
      }
      NDP_TRY(Value value, Read(pair.second, depth + 1));
      if (pair.first.IsScalar() && pair.first.Scalar() == "<<" && pair.first.Tag() != "!") {
        merged.push_back(std::move(value));
        continue;
      }
      // yaml-cpp puts the nothing behind `key:` where the next token is.
      if (value.is_null()) value.set_line(line);
      map.entries().push_back(
          {pair.first.IsNull() ? "" : pair.first.Scalar(), line, std::move(value)});
    }
    for (const Value& source : merged) {
      const auto single = std::vector<Value>{source};
      for (const Value& from : source.is_list() ? source.items() : single) {
        if (!from.is_map()) return Refuse(source.line(), "a merge key (<<) takes a map");
        for (const Value::Entry& entry : from.entries()) {
          if (map.Find(entry.key) == nullptr) map.entries().push_back(entry);
        }
      }
    }
    return map;
  }

  int values_ = 0;
  std::size_t text_ = 0;
};

// Where a document begins.
class StartOnly final : public YAML::EventHandler {
 public:
  int line() const { return line_; }

  void OnDocumentStart(const YAML::Mark& mark) override { line_ = LineOf(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}

 private:
  int line_ = 0;
};

// The line of what follows the first document. YAML::LoadAll is not for texts of others: it takes
// a comma where no list is for an empty document, does not pass it, and so finds documents until
// the memory is full.
std::optional<int> LineAfterFirst(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  StartOnly handler;
  if (!parser.HandleNextDocument(handler) || !parser.HandleNextDocument(handler)) return {};
  return handler.line();
}

// What yaml-cpp says of tabs is that something is illegal.
std::string_view HintAt(std::string_view text, int line) {
  for (int at = 1; at < line; ++at)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const std::string_view indent = text.substr(0, text.find_first_not_of(" \t"));
  return indent.contains('\t') ? " (YAML is indented with spaces, not with tabs)" : "";
}

// Whether some reader, of whatever YAML version, would take the plain text for something else.
bool NeedsQuotes(std::string_view text) {
  if (ResolvePlainScalar(text).kind() != Kind::kString) return true;
  if (text == "<<" || text == "=" || EqualsIgnoreCase(text, "y") || EqualsIgnoreCase(text, "n")) {
    return true;
  }
  return text.find_first_not_of("0123456789_:.+-") == std::string_view::npos;  // 010, 1:30
}

void Write(YAML::Emitter& out, const Value& value) {
  switch (value.kind()) {
    case Kind::kNull:
      out << YAML::Null;
      break;
    case Kind::kBool:
      out << *value.AsBool();
      break;
    case Kind::kInt:
      out << *value.AsInt();
      break;
    case Kind::kFloat: {
      const double number = *value.AsFloat();
      if (std::isnan(number)) {
        out << ".nan";
      } else if (std::isinf(number)) {
        out << (number > 0 ? ".inf" : "-.inf");
      } else {
        const std::string text = fmt::to_string(number);
        out << (text.find_first_of(".e") == std::string::npos ? text + ".0" : text);
      }
      break;
    }
    case Kind::kString: {
      const std::string text = value.Text();
      if (NeedsQuotes(text)) out << YAML::DoubleQuoted;
      out << text;
      break;
    }
    case Kind::kList:
      if (value.items().empty()) out << YAML::Flow;
      out << YAML::BeginSeq;
      for (const Value& item : value.items()) Write(out, item);
      out << YAML::EndSeq;
      break;
    case Kind::kMap:
      if (value.entries().empty()) out << YAML::Flow;
      out << YAML::BeginMap;
      for (const Value::Entry& entry : value.entries()) {
        out << YAML::Key;
        Write(out, Value(entry.key));
        out << YAML::Value;
        Write(out, entry.value);
      }
      out << YAML::EndMap;
      break;
  }
}

}  // namespace

Result<Value> ParseYaml(std::string_view text) {
  // yaml-cpp ends a word there. UTF-16 is full of them, and is told by its first two bytes.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos &&
                                               !text.starts_with("\xFF\xFE") &&
                                               !text.starts_with("\xFE\xFF")) {
    return Error(
        Code::kInvalidArgument,
        fmt::format("line {}: a NUL character", 1 + std::ranges::count(text.substr(0, nul), '\n')));
  }
  try {
    const std::string copy(text);
    if (const std::optional<int> line = LineAfterFirst(copy)) {
      return Error(
          Code::kInvalidArgument,
          fmt::format("line {}: a second document, or a \",\" outside of brackets: want one "
                      "document",
                      *line));
    }
    return Reader().Read(YAML::Load(copy), 0);
  } catch (const YAML::DeepRecursion& e) {
    return Error(Code::kInvalidArgument,
                 fmt::format("line {}: nested more than {} deep", LineOf(e.mark), kMaxDepth));
  } catch (const YAML::Exception& e) {
    return Error(Code::kInvalidArgument,
                 fmt::format("line {}: {}{}", LineOf(e.mark), e.msg, HintAt(text, LineOf(e.mark))));
  }
}

std::string ToYaml(const Value& value) {
  YAML::Emitter out;
  Write(out, value);
  return std::string(out.c_str(), out.size()) + "\n";
}

}  // namespace ndp::doc
