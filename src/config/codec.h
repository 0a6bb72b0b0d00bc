// How texts become the fields of Settings and back: one Codec per field type, and Bind, which ties
// an option to its field. For the option table only.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/enum_names.h"
#include "config/option.h"

namespace ndp::config {

using Values = std::vector<std::string>;
using Warnings = std::vector<std::string>;

// `invalid value "-5": want a number of more than 0`.
Error BadValue(std::string_view value, std::string_view want);
// `unknown value "mixd": want one of none, single, mixed`.
Error UnknownChoice(std::string_view value, const std::vector<std::string_view>& choices);

template <typename T>
struct Codec;

template <>
struct Codec<bool> {
  static constexpr Kind kKind = Kind::kBool;
  static Result<bool> Parse(const Values& values, Warnings& warnings);
  static doc::Value Show(bool value) { return value; }
};

template <>
struct Codec<int> {
  static constexpr Kind kKind = Kind::kNumber;
  static Result<int> Parse(const Values& values, Warnings& warnings);
  static doc::Value Show(int value) { return value; }
};

template <>
struct Codec<double> {
  static constexpr Kind kKind = Kind::kNumber;
  static Result<double> Parse(const Values& values, Warnings& warnings);
  static doc::Value Show(double value) { return value; }
};

template <>
struct Codec<std::string> {
  static constexpr Kind kKind = Kind::kText;
  static Result<std::string> Parse(const Values& values, Warnings& /*warnings*/) {
    return values.back();
  }
  static doc::Value Show(const std::string& value) { return value; }
};

template <>
struct Codec<Duration> {
  static constexpr Kind kKind = Kind::kDuration;
  static Result<Duration> Parse(const Values& values, Warnings& warnings);
  static doc::Value Show(Duration value);
};

template <>
struct Codec<std::optional<Duration>> {  // nullopt is `infinite`
  static constexpr Kind kKind = Kind::kDuration;
  static Result<std::optional<Duration>> Parse(const Values& values, Warnings& warnings);
  static doc::Value Show(std::optional<Duration> value);
};

template <>
struct Codec<std::vector<int>> {
  static constexpr Kind kKind = Kind::kList;
  static Result<std::vector<int>> Parse(const Values& values, Warnings& warnings);
  static doc::Value Show(const std::vector<int>& value);
};

template <>
struct Codec<XidSelection> {
  static constexpr Kind kKind = Kind::kList;
  static Result<XidSelection> Parse(const Values& values, Warnings& warnings);
  static doc::Value Show(const XidSelection& value);
};

template <>
struct Codec<std::set<CdiFeature>> {
  static constexpr Kind kKind = Kind::kList;
  static Result<std::set<CdiFeature>> Parse(const Values& values, Warnings& warnings);
  static doc::Value Show(const std::set<CdiFeature>& value);
};

template <>
struct Codec<ListenAddress> {
  static constexpr Kind kKind = Kind::kText;
  static Result<ListenAddress> Parse(const Values& values, Warnings& warnings);
  static doc::Value Show(const ListenAddress& value);
};

template <typename E>
  requires std::is_enum_v<E>
struct Codec<E> {
  static constexpr Kind kKind = Kind::kChoice;
  static std::vector<std::string_view> Choices() { return AllNames<E>(); }
  static Result<E> Parse(const Values& values, Warnings& /*warnings*/) {
    if (const auto value = FromName<E>(values.back())) return *value;
    return UnknownChoice(values.back(), Choices());
  }
  static doc::Value Show(E value) { return Name(value); }
};

// A set or a vector of an enumeration.
template <template <typename...> typename C, typename E>
  requires std::is_enum_v<E>
struct Codec<C<E>> {
  static constexpr Kind kKind = Kind::kList;
  static std::vector<std::string_view> Choices() { return AllNames<E>(); }
  static Result<C<E>> Parse(const Values& values, Warnings& /*warnings*/) {
    C<E> out;
    for (const std::string& text : values) {
      const auto value = FromName<E>(text);
      if (!value) return UnknownChoice(text, Choices());
      out.insert(out.end(), *value);
    }
    return out;
  }
  static doc::Value Show(const C<E>& values) {
    doc::Value list = doc::Value::List();
    for (const E value : values) list.Append(Name(value));
    return list;
  }
};

// `access` is a generic lambda from (const) Settings& to the field. `check`, where given, says
// what is wrong with a value of the right form.
template <typename Access, typename T = std::remove_cvref_t<
                               decltype(std::declval<Access>()(std::declval<Settings&>()))>>
Binding Bind(Access access, Status (*check)(const T&) = nullptr) {
  Binding bind;
  bind.kind = Codec<T>::kKind;
  if constexpr (requires { Codec<T>::Choices(); }) bind.choices = Codec<T>::Choices();
  bind.set = [access, check](const Values& values, Settings& settings,
                             Warnings& warnings) -> Status {
    NDP_TRY(T value, Codec<T>::Parse(values, warnings));
    if (check != nullptr) NDP_TRY(check(value));
    access(settings) = std::move(value);
    return {};
  };
  bind.show = [access](const Settings& settings) { return Codec<T>::Show(access(settings)); };
  return bind;
}

}  // namespace ndp::config
