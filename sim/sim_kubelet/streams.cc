#include "sim_kubelet/streams.h"

#include <thread>
#include <utility>

namespace ndp::sim_kubelet {

// What one stream has seen. Its thread is the only writer.
struct Streams::Stream {
  std::shared_ptr<PluginClient> client;
  std::thread reader;
  mutable std::mutex mutex;
  bool open = true;
  int lists = 0;
  std::vector<Device> devices;
  std::string ended;

  void Read() {
    const std::string how = client->Watch([this](std::vector<Device> list) {
      const std::lock_guard lock(mutex);
      ++lists;
      devices = std::move(list);
    });
    const std::lock_guard lock(mutex);
    open = false;
    ended = how;
  }
  void End() {
    client->Close();
    if (reader.joinable()) reader.join();
  }
};

Streams::~Streams() {
  for (auto& [name, stream] : streams_) stream->End();
}

Status Streams::Open(const std::string& name, const std::filesystem::path& socket) {
  const std::lock_guard lock(mutex_);
  auto& stream = streams_[name];
  if (stream != nullptr) {
    const std::lock_guard one(stream->mutex);
    if (stream->open) return Error(Code::kInvalidArgument, "stream '" + name + "' is open");
  }
  if (stream != nullptr) stream->End();
  stream = std::make_shared<Stream>();
  auto client = PluginClient::Connect(socket);
  if (!client.ok()) {
    streams_.erase(name);
    return std::move(client).error().WithContext(socket.string());
  }
  stream->client = *std::move(client);
  stream->reader = std::thread([raw = stream.get()] { raw->Read(); });
  return {};
}

Status Streams::Close(const std::string& name) {
  std::shared_ptr<Stream> stream;
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(name);
    if (found == streams_.end()) return Error(Code::kNotFound, "no stream '" + name + "'");
    stream = found->second;
  }
  stream->End();
  return {};
}

doc::Value Streams::Describe() const {
  const std::lock_guard lock(mutex_);
  doc::Value all = doc::Value::Map();
  for (const auto& [name, stream] : streams_) {
    const std::lock_guard one(stream->mutex);
    doc::Value entry = doc::Value::Map();
    entry.Set("open", stream->open);
    entry.Set("lists", stream->lists);
    entry.Set("devices", stream->devices.size());
    doc::Value unhealthy = doc::Value::List();
    for (const Device& device : stream->devices) {
      if (!device.healthy) unhealthy.Append(device.id);
    }
    entry.Set("unhealthy", std::move(unhealthy));
    if (!stream->open) entry.Set("ended", stream->ended);
    all.Set(name, std::move(entry));
  }
  return all;
}

}  // namespace ndp::sim_kubelet
