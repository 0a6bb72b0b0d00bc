#include "health/examination_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doc/json.h"
#include "testing/result_matchers.h"

namespace ndp::health {
namespace {

std::string Again(const Examination& examination) {
  const auto document = doc::ParseJson(doc::ToJson(ToDoc(examination)));
  if (!document.ok()) return document.error().message();
  const auto back = ExaminationFrom(*document);
  return back.ok() ? doc::ToJson(ToDoc(*back)) : back.error().message();
}

TEST(ExaminationDocumentTest, EverythingComesBack) {
  Examination full{.failure = nvml::Failure{15, "nvmlDeviceGetUUID", "GPU is lost"},
                   .uuid = "GPU-a",
                   .sample = {}};
  full.sample.recovery_action = 4;
  full.sample.retired_pages_pending = true;
  full.sample.total_energy_mj = std::uint64_t{1} << 50;
  full.sample.temperature = 34;
  full.sample.compute_mode = 3;
  full.sample.remapped_rows = {.correctable = 1, .uncorrectable = 2, .pending = true};
  full.sample.fabric = nvml::Fabric{.state = nvml::FabricState::kInProgress};
  full.sample.failures = {{16, "nvmlDeviceGetTemperature", "needs a reset"}};
  const std::string text = doc::ToJson(ToDoc(full));
  EXPECT_EQ(Again(full), text);
  for (const char* part : {"GPU is lost", "\"recoveryAction\":4", "1125899906842624",
                           "\"fabric\":{\"state\":2", "\"pending\":true", "needs a reset"}) {
    EXPECT_THAT(text, testing::HasSubstr(part));
  }
}

TEST(ExaminationDocumentTest, WhatIsAbsentStaysAbsent) {
  const Examination empty{.failure = {}, .uuid = "GPU-a", .sample = {}};
  EXPECT_EQ(doc::ToJson(ToDoc(empty)), R"({"uuid":"GPU-a","failures":[]})");
  EXPECT_EQ(Again(empty), R"({"uuid":"GPU-a","failures":[]})");
}

TEST(ExaminationDocumentTest, WhatIsNoneIsRefused) {
  EXPECT_THAT(ExaminationFrom(doc::Value(3)), IsError(Code::kInvalidArgument));
  EXPECT_THAT(ExaminationFrom(doc::Value::Map()), IsError(Code::kInvalidArgument));
}

}  // namespace
}  // namespace ndp::health
