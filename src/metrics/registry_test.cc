#include "metrics/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <locale>
#include <thread>
#include <vector>

namespace ndp::metrics {
namespace {

using testing::HasSubstr;

TEST(RegistryTest, TextIsSortedWithHelpAndTypeOncePerName) {
  Registry registry;
  registry.AddGauge("ndp_devices", "Devices.", {{"health", "Unhealthy"}}).Set(1);
  registry.AddGauge("ndp_devices", "Devices.", {{"health", "Healthy"}}).Set(7.5);
  registry.AddCounter("ndp_allocations_total", "Allocations.").Increment(3);
  EXPECT_EQ(registry.Text(),
            "# HELP ndp_allocations_total Allocations.\n"
            "# TYPE ndp_allocations_total counter\n"
            "ndp_allocations_total 3\n"
            "# HELP ndp_devices Devices.\n"
            "# TYPE ndp_devices gauge\n"
            "ndp_devices{health=\"Healthy\"} 7.5\n"
            "ndp_devices{health=\"Unhealthy\"} 1\n");
}

TEST(RegistryTest, LabelsAndHelpAreEscaped) {
  Registry registry;
  registry.AddGauge("g", "a\\b\n\"c\"", {{"l", "x\"y\\z\n"}});
  EXPECT_EQ(registry.Text(),
            "# HELP g a\\\\b\\n\"c\"\n# TYPE g gauge\ng{l=\"x\\\"y\\\\z\\n\"} 0\n");
}

TEST(RegistryTest, HistogramBucketsAreCumulativeAndIncludeTheirBound) {
  Registry registry;
  constexpr double kBounds[] = {0.1, 1};
  Histogram& h = registry.AddHistogram("h", "H.", kBounds, {{"rpc", "Allocate"}});
  for (double value : {0.1, 0.5, 2.0}) h.Observe(value);
  EXPECT_EQ(registry.Text(),
            "# HELP h H.\n# TYPE h histogram\n"
            "h_bucket{rpc=\"Allocate\",le=\"0.1\"} 1\n"
            "h_bucket{rpc=\"Allocate\",le=\"1\"} 2\n"
            "h_bucket{rpc=\"Allocate\",le=\"+Inf\"} 3\n"
            "h_sum{rpc=\"Allocate\"} 2.6\n"
            "h_count{rpc=\"Allocate\"} 3\n");
}

TEST(RegistryTest, SpecialNumbersHaveTheirSpellings) {
  Registry registry;
  Gauge& gauge = registry.AddGauge("g", "G.");
  gauge.Set(std::numeric_limits<double>::infinity());
  EXPECT_THAT(registry.Text(), HasSubstr("g +Inf\n"));
  gauge.Set(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(registry.Text(), HasSubstr("g NaN\n"));
}

// Writes 1.5 as "1,5" and 1000 as "1.000".
struct GermanNumbers : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(RegistryTest, NumbersDoNotDependOnTheLocale) {
  const std::locale before =
      std::locale::global(std::locale(std::locale::classic(), new GermanNumbers));
  Registry registry;
  registry.AddGauge("g", "G.").Set(1234.5);
  registry.AddCounter("c", "C.").Increment(1'000'000);
  const std::string text = registry.Text();
  std::locale::global(before);
  EXPECT_THAT(text, HasSubstr("g 1234.5\n"));
  EXPECT_THAT(text, HasSubstr("c 1000000\n"));
}

TEST(RegistryTest, TheSameNameAndLabelsAreTheSameMetric) {
  Registry registry;
  Counter& first = registry.AddCounter("c", "C.", {{"a", "1"}});
  EXPECT_EQ(&registry.AddCounter("c", "C.", {{"a", "1"}}), &first);
  EXPECT_NE(&registry.AddCounter("c", "C.", {{"a", "2"}}), &first);
}

TEST(RegistryTest, ReplacedGaugesOfVanishedDevicesAreGone) {
  Registry registry;
  registry.ReplaceGauges("g", "G.", {{{{"uuid", "GPU-1"}}, 1}, {{{"uuid", "GPU-2"}}, 0}});
  registry.ReplaceGauges("g", "G.", {{{{"uuid", "GPU-2"}}, 1}});
  EXPECT_EQ(registry.Text(), "# HELP g G.\n# TYPE g gauge\ng{uuid=\"GPU-2\"} 1\n");
  registry.ReplaceGauges("g", "G.", {});
  EXPECT_EQ(registry.Text(), "");
}

TEST(RegistryTest, UpdatesFromSeveralThreadsAreNotLost) {
  Registry registry;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&registry] {
      Counter& counter = registry.AddCounter("c", "C.");
      Histogram& histogram = registry.AddHistogram("h", "H.", LatencyBounds());
      for (int n = 0; n < 1000; ++n) {
        counter.Increment();
        histogram.Observe(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(registry.Text(), HasSubstr("c 4000\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("h_sum 4000\nh_count 4000\n"));
}

TEST(RegistryDeathTest, ANameHasOneTypeAndLegalCharacters) {
  Registry registry;
  registry.AddCounter("c", "C.");
  EXPECT_DEATH(registry.AddGauge("c", "C."), "broken invariant");
  EXPECT_DEATH(registry.AddGauge("a-b", "C."), "broken invariant");
}

}  // namespace
}  // namespace ndp::metrics
