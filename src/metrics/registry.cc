#include "metrics/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/result.h"

namespace ndp::metrics {
namespace {

bool IsName(std::string_view name) {
  const auto legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::ranges::all_of(name, legal);
}

// The format escapes a quote in label values, and not in help texts.
std::string Escape(std::string_view text, bool quotes) {
  std::string out;
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '\\' || (quotes && c == '"')) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string LabelText(const Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    NDP_CHECK(IsName(name));
    if (!out.empty()) out += ',';
    out += fmt::format("{}=\"{}\"", name, Escape(value, true));
  }
  return out;
}

// fmt never asks the locale; infinities and NaN have spellings of their own here.
std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

void Sample(std::string& out, std::string_view name, std::string_view labels,
            std::string_view value) {
  if (labels.empty()) {
    fmt::format_to(std::back_inserter(out), "{} {}\n", name, value);
  } else {
    fmt::format_to(std::back_inserter(out), "{}{{{}}} {}\n", name, labels, value);
  }
}

void Append(std::string& out, const std::string& name, const std::string& labels,
            const Histogram& histogram) {
  const std::string prefix = labels.empty() ? "" : labels + ",";
  const std::vector<std::uint64_t> counts = histogram.counts();
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    const std::string bound =
        i < histogram.bounds().size() ? Number(histogram.bounds()[i]) : "+Inf";
    Sample(out, name + "_bucket", fmt::format("{}le=\"{}\"", prefix, bound), fmt::to_string(total));
  }
  Sample(out, name + "_sum", labels, Number(histogram.sum()));
  // Not a count of its own: it must equal the last bucket, also during updates.
  Sample(out, name + "_count", labels, fmt::to_string(total));
}

}  // namespace

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1) {
  NDP_CHECK(std::ranges::is_sorted(bounds_));
}

void Histogram::Observe(double value) {
  const auto bound = std::ranges::lower_bound(bounds_, value);
  counts_[static_cast<std::size_t>(bound - bounds_.begin())].fetch_add(1,
                                                                       std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<std::uint64_t> Histogram::counts() const {
  std::vector<std::uint64_t> out;
  out.reserve(counts_.size());
  for (const auto& count : counts_) out.push_back(count.load(std::memory_order_relaxed));
  return out;
}

std::span<const double> LatencyBounds() {
  static constexpr double kBounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                       0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
  return kBounds;
}

Registry::Family& Registry::FamilyOf(std::string_view name, std::string_view help,
                                     std::string_view type) {
  auto at = families_.find(name);
  if (at == families_.end()) {
    NDP_CHECK(IsName(name));
    at = families_
             .emplace(std::string(name),
                      Family{.help = std::string(help), .type = type, .metrics = {}})
             .first;
  }
  NDP_CHECK(at->second.type == type);
  return at->second;
}

template <typename T, typename... Args>
T& Registry::Add(std::string_view name, std::string_view help, std::string_view type,
                 const Labels& labels, Args&&... args) {
  MutexLock lock(mutex_);
  Metric& metric = FamilyOf(name, help, type).metrics[LabelText(labels)];
  auto* held = std::get_if<std::unique_ptr<T>>(&metric);
  if (held == nullptr || *held == nullptr) {
    held = &metric.emplace<std::unique_ptr<T>>(std::make_unique<T>(std::forward<Args>(args)...));
  }
  return **held;
}

Counter& Registry::AddCounter(std::string_view name, std::string_view help, const Labels& labels) {
  return Add<Counter>(name, help, "counter", labels);
}

Gauge& Registry::AddGauge(std::string_view name, std::string_view help, const Labels& labels) {
  return Add<Gauge>(name, help, "gauge", labels);
}

Histogram& Registry::AddHistogram(std::string_view name, std::string_view help,
                                  std::span<const double> bounds, const Labels& labels) {
  return Add<Histogram>(name, help, "histogram", labels, bounds);
}

void Registry::ReplaceGauges(std::string_view name, std::string_view help,
                             const std::vector<std::pair<Labels, double>>& values) {
  std::map<std::string, Metric> metrics;
  for (const auto& [labels, value] : values) metrics[LabelText(labels)] = value;
  MutexLock lock(mutex_);
  Family& family = FamilyOf(name, help, "gauge");
  // A gauge that somebody holds by reference must not vanish.
  for (const auto& [labels, metric] : family.metrics) {
    NDP_CHECK(std::holds_alternative<double>(metric));
  }
  family.metrics = std::move(metrics);
}

std::string Registry::Text() const {
  MutexLock lock(mutex_);
  std::string out;
  for (const auto& [name, family] : families_) {
    if (family.metrics.empty()) continue;
    fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n", name,
                   Escape(family.help, false), name, family.type);
    for (const auto& [labels, metric] : family.metrics) {
      if (const auto* counter = std::get_if<std::unique_ptr<Counter>>(&metric)) {
        Sample(out, name, labels, fmt::to_string((*counter)->value()));
      } else if (const auto* gauge = std::get_if<std::unique_ptr<Gauge>>(&metric)) {
        Sample(out, name, labels, Number((*gauge)->value()));
      } else if (const auto* histogram = std::get_if<std::unique_ptr<Histogram>>(&metric)) {
        Append(out, name, labels, **histogram);
      } else {
        Sample(out, name, labels, Number(std::get<double>(metric)));
      }
    }
  }
  return out;
}

}  // namespace ndp::metrics
