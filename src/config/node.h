// A place in the configuration file: a value with its key path, so that every error can name both
// the path and the line. For the readers of the file's sections.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/selector.h"
#include "doc/value.h"

namespace ndp::config {

class Node {
 public:
  Node(const doc::Value* value, std::string path, int line)
      : value_(value), path_(std::move(path)), line_(line) {}
  explicit Node(const doc::Value& root) : Node(&root, "", root.line()) {}

  // Absent and null are the same: not set.
  bool set() const { return value_ != nullptr && !value_->is_null(); }
  const doc::Value& value() const { return *value_; }
  int line() const { return line_; }
  Where where() const { return {.key_path = path_, .line = line_}; }

  // The entry of a map, which may be unset. kInvalidArgument where this is set but no map.
  Result<Node> At(std::string_view key) const;
  // By a path such as flags.plugin.mpsRoot.
  Result<Node> Find(std::string_view dotted) const;
  // Of a list; none where this is not set. kInvalidArgument where it is no list.
  Result<std::vector<Node>> Items() const;

  // kInvalidArgument where this is of another type. A number is a text too, as it was written.
  Result<std::string> Text() const;
  Result<bool> Bool() const;
  Result<std::int64_t> Int() const;

  // `sharing.mps.resources[0].replicas (line 7): <message>`.
  Error Bad(std::string_view message) const;
  // `…: want a boolean, got a list`.
  Error WrongType(std::string_view want) const;

 private:
  const doc::Value* value_;
  std::string path_;
  int line_;
};

}  // namespace ndp::config
