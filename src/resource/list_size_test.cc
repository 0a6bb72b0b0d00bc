#include "resource/list_size.h"

#include <gtest/gtest.h>

#include <string>

namespace ndp::resource {
namespace {

// The entry as protobuf writes it, byte by byte.
std::size_t Written(const std::string& id, const std::string& health, const std::string& topology) {
  std::string body = "\x0a";
  body += static_cast<char>(id.size());
  body += id + "\x12";
  body += static_cast<char>(health.size());
  body += health + topology;
  std::string entry = "\x0a";
  EXPECT_LT(body.size(), 0x80U);
  entry += static_cast<char>(body.size());
  return (entry + body).size();
}

TEST(ListSizeTest, EntryIsAsOnTheWire) {
  EXPECT_EQ(ListEntryBytes(5, true, std::nullopt), Written("GPU-0", "Healthy", ""));
  EXPECT_EQ(ListEntryBytes(5, false, std::nullopt), Written("GPU-0", "Unhealthy", ""));
}

TEST(ListSizeTest, NumaNodeZeroIsAPresentNodeWithoutItsNumber) {
  EXPECT_EQ(ListEntryBytes(5, true, 0),
            Written("GPU-0", "Healthy", std::string("\x1a\x02\x0a\0", 4)));
  EXPECT_EQ(ListEntryBytes(5, true, 1), Written("GPU-0", "Healthy", "\x1a\x04\x0a\x02\x08\x01"));
  EXPECT_EQ(ListEntryBytes(5, true, 300),
            Written("GPU-0", "Healthy", "\x1a\x05\x0a\x03\x08\xac\x02"));
}

TEST(ListSizeTest, LengthsOf128AndMoreTakeTwoBytes) {
  // Body: 2 + 200 + 1 for the id, 2 + 7 for the health.
  EXPECT_EQ(ListEntryBytes(200, true, std::nullopt), 1U + 2 + (1 + 2 + 200) + (2 + 7));
}

Resource Shared(int gpus, int replicas) {
  Resource resource;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    Device device;
    device.uuid = std::string(40, 'u');
    device.numa_node = gpu % 2;
    device.replicas = replicas;
    resource.devices.push_back(device);
  }
  return resource;
}

TEST(ListSizeTest, ListIsTheSumOverAllIds) {
  for (const int replicas : {0, 2, 10, 11, 100, 1234}) {
    const Resource resource = Shared(3, replicas);
    std::uint64_t sum = 0;
    for (const Device& device : resource.devices) {
      for (int n = 0; n < device.ids(); ++n) {
        sum += ListEntryBytes(device.Id(n).size(), false, device.numa_node);
      }
    }
    EXPECT_EQ(ListBytes(resource), sum) << replicas;
  }
}

TEST(ListSizeTest, MostReplicasIsTheLastNumberThatFits) {
  const int most = MostReplicas(Shared(8, 2));
  EXPECT_LE(ListBytes(Shared(8, most)), kMaxListBytes);
  EXPECT_GT(ListBytes(Shared(8, most + 1)), kMaxListBytes);
  EXPECT_GT(most, 7000);
}

}  // namespace
}  // namespace ndp::resource
