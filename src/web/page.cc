#include "web/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace ndp::web {
namespace {

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="10">
<meta name="viewport" content="width=device-width"><title>NVIDIA device plugin</title>
<style>
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;margin:1.5em;max-width:80em}
h1{font-size:1.2em;margin:0 0 .6em}h2{font-size:1.05em;margin:1.6em 0 .4em}
table{border-collapse:collapse}th,td{text-align:left;vertical-align:top;padding:.15em .9em .15em 0;
border-bottom:1px solid #8884;font-variant-numeric:tabular-nums}th{font-weight:600}
.verdict{padding:.5em .8em;border-radius:.4em;font-size:1.1em;color:#fff}
.yes{background:#176d3b}.no{background:#b3261e}
.bad{color:#d33;font-weight:600}.good{color:#2a8a4a}.none{opacity:.5}
footer{margin-top:2em;opacity:.7;font-size:.9em}
</style></head><body><h1>NVIDIA device plugin</h1>
)";

std::string Escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// "preferredAllocation" and "socket_path" read as words.
std::string Words(std::string_view key) {
  std::string out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    const bool upper = c >= 'A' && c <= 'Z';
    const bool after_lower = i > 0 && key[i - 1] >= 'a' && key[i - 1] <= 'z';
    if (upper && after_lower) {
      out += ' ';
      out += static_cast<char>(c - 'A' + 'a');
    } else {
      out += c == '_' ? ' ' : c;
    }
  }
  return out;
}

bool OneOf(std::string_view text, std::span<const std::string_view> among) {
  return std::ranges::any_of(among, [&](std::string_view t) { return EqualsIgnoreCase(t, text); });
}

std::string Scalar(const doc::Value& value) {
  static constexpr std::array<std::string_view, 8> kBad = {
      "unhealthy", "lost", "failed", "error", "fenced", "unreachable", "hung", "not registered"};
  static constexpr std::array<std::string_view, 4> kGood = {"healthy", "registered", "ready", "ok"};
  const std::string text = value.Text();
  if (text.empty()) return "<span class=\"none\">–</span>";
  if (OneOf(text, kBad)) return fmt::format("<span class=\"bad\">{}</span>", Escape(text));
  if (OneOf(text, kGood)) return fmt::format("<span class=\"good\">{}</span>", Escape(text));
  return Escape(text);
}

std::string Render(const doc::Value& value);

std::string RenderMap(const doc::Value& map) {
  std::string out = "<table>";
  for (const doc::Value::Entry& entry : map.entries()) {
    fmt::format_to(std::back_inserter(out), "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
                   Escape(Words(entry.key)), Render(entry.value));
  }
  return out + "</table>";
}

// One row an item, one column for every key that occurs.
std::string RenderTable(const doc::Value& list) {
  std::vector<std::string> columns;
  for (const doc::Value& item : list.items()) {
    for (const doc::Value::Entry& entry : item.entries()) {
      if (std::ranges::find(columns, entry.key) == columns.end()) columns.push_back(entry.key);
    }
  }
  std::string out = "<table><tr>";
  for (const std::string& column : columns) {
    fmt::format_to(std::back_inserter(out), "<th scope=\"col\">{}</th>", Escape(Words(column)));
  }
  out += "</tr>";
  for (const doc::Value& item : list.items()) {
    out += "<tr>";
    for (const std::string& column : columns) {
      const doc::Value* cell = item.Find(column);
      fmt::format_to(std::back_inserter(out), "<td>{}</td>",
                     cell != nullptr ? Render(*cell) : std::string());
    }
    out += "</tr>";
  }
  return out + "</table>";
}

std::string RenderList(const doc::Value& list) {
  if (list.items().empty()) return "<span class=\"none\">none</span>";
  if (std::ranges::all_of(list.items(), [](const doc::Value& item) { return item.is_map(); })) {
    return RenderTable(list);
  }
  std::string out;
  for (const doc::Value& item : list.items()) {
    if (!out.empty()) out += "<br>";
    out += Render(item);
  }
  return out;
}

std::string Render(const doc::Value& value) {
  if (value.is_map()) return RenderMap(value);
  if (value.is_list()) return RenderList(value);
  return Scalar(value);
}

}  // namespace

std::string RenderPage(const doc::Value& status, const Status& ready) {
  std::string out(kHead);
  auto append = std::back_inserter(out);
  if (ready.ok()) {
    out += "<p class=\"verdict yes\">Ready</p>";
  } else {
    fmt::format_to(append, "<p class=\"verdict no\">Not ready: {}</p>",
                   Escape(ready.error().message()));
  }
  // Single values first, in one table; then one section for each part.
  doc::Value scalars = doc::Value::Map();
  for (const doc::Value::Entry& entry : status.entries()) {
    if (entry.value.is_scalar()) scalars.Set(entry.key, entry.value);
  }
  out += RenderMap(scalars);
  for (const doc::Value::Entry& entry : status.entries()) {
    if (entry.value.is_scalar()) continue;
    fmt::format_to(append, "<h2>{}</h2>{}\n", Escape(Words(entry.key)), Render(entry.value));
  }
  out +=
      "<footer>Refreshed every 10 s. Also: <a href=\"/status.json\">status.json</a> · "
      "<a href=\"/metrics\">metrics</a> · <a href=\"/readyz\">readyz</a> · "
      "<a href=\"/livez\">livez</a></footer></body></html>\n";
  return out;
}

}  // namespace ndp::web
