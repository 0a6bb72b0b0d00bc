#include "web/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doc/json.h"

namespace ndp::web {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Page(std::string_view json, const Status& ready = {}) {
  return RenderPage(doc::ParseJson(json).value(), ready);
}

TEST(PageTest, TheVerdictAndItsReasonComeFirst) {
  EXPECT_THAT(Page("{}"), HasSubstr(">Ready<"));
  const std::string page =
      Page("{\"version\":\"1\"}", Error(Code::kUnavailable, "nvidia.com/gpu is not registered"));
  EXPECT_THAT(page, HasSubstr("Not ready: nvidia.com/gpu is not registered"));
  EXPECT_LT(page.find("Not ready"), page.find("version"));
}

TEST(PageTest, AListOfMapsIsATableWithEveryColumn) {
  EXPECT_THAT(Page(R"({"devices":[{"id":"GPU-1","health":"Healthy"},{"id":"GPU-2","xid":79}]})"),
              AllOf(HasSubstr("<h2>devices</h2>"), HasSubstr("<th scope=\"col\">xid</th>"),
                    HasSubstr("<td>GPU-2</td><td></td><td>79</td>")));
}

TEST(PageTest, WhatIsBadStandsOut) {
  EXPECT_THAT(Page(R"({"devices":[{"health":"Unhealthy"}]})"),
              HasSubstr("<span class=\"bad\">Unhealthy</span>"));
}

TEST(PageTest, EveryTextIsEscaped) {
  const std::string page = Page(R"({"<a>":"<script>\"&"})", Error(Code::kInternal, "<b>"));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<script>")), Not(HasSubstr("<a>")), Not(HasSubstr("<b>")),
                          HasSubstr("&lt;script&gt;&quot;&amp;")));
}

TEST(PageTest, NoAssetIsLoadedFromElsewhere) {
  EXPECT_THAT(Page(R"({"a":[1,[2,{"b":null}]]})"),
              AllOf(Not(HasSubstr("http://")), Not(HasSubstr("https://")), Not(HasSubstr("src="))));
}

TEST(PageTest, KeysReadAsWords) {
  EXPECT_THAT(Page(R"({"kubeletSocket":"/x","numa_node":1})"),
              AllOf(HasSubstr("kubelet socket"), HasSubstr("numa node")));
}

}  // namespace
}  // namespace ndp::web
