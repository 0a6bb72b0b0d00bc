#include "node/holders.h"

#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "base/log.h"

namespace ndp::node {

Holders::Holders(os::EventLoop& loop, Ask ask, std::function<void()> changed, Duration ask_every)
    : loop_(loop), ask_(std::move(ask)), changed_(std::move(changed)), ask_every_(ask_every) {}

Holders::~Holders() { *alive_ = false; }

void Holders::Read(const std::filesystem::path& folder) {
  file_ = folder / "kubelet_internal_checkpoint";
  // Looked at before it is read: what is replaced in between is read again the next time.
  struct stat file = {};
  const bool there = ::stat(file_.c_str(), &file) == 0;
  std::ifstream in(file_, std::ios::binary);
  if (!there || !in) {
    version_.reset();
    error_.clear();
    written_ = {};  // no kubelet has given anything out yet
    return Settle();
  }
  const Version version(file.st_ino, std::chrono::seconds(file.st_mtim.tv_sec) +
                                         std::chrono::nanoseconds(file.st_mtim.tv_nsec));
  if (version_ == version && error_.empty()) return;
  const std::string text(std::istreambuf_iterator<char>(in), {});
  auto written = plugin::ParseCheckpoint(text);
  if (!written) {
    // What was held before is held until the file says otherwise.
    if (std::exchange(error_, written.error().message()) != error_) {
      log::Warning("cannot tell which devices pods hold",
                   {{"file", file_.string()}, {"why", error_}});
    }
    return;
  }
  error_.clear();
  version_ = version;
  written_ = *std::move(written);
  latest_.reset();
  before_.reset();
  Settle();
}

void Holders::Settle() {
  held_ = latest_ && before_ ? written_.HeldInAny(*latest_, *before_) : written_;
}

void Holders::Doubt() {
  if (asking_ || again_) return;
  asking_ = true;
  ask_([this, alive = alive_, loop = loop_.poster(),
        asked = version_](Result<plugin::HeldDevices> answer) mutable {
    loop.Post([this, alive, asked, answer = std::move(answer)]() mutable {
      if (*alive) OnAnswer(asked, std::move(answer));
    });
  });
}

void Holders::OnAnswer(const std::optional<Version>& asked, Result<plugin::HeldDevices> answer) {
  asking_ = false;
  // Pods that still run may do so for days.
  again_ = loop_.After(before_ ? kPatience * ask_every_ : ask_every_, [this] {
    again_.Cancel();
    changed_();
  });
  if (!answer) {
    if (std::exchange(ask_error_, answer.error().message()) != ask_error_) {
      log::Warning(
          "devices wait for pods to let go of them, and the kubelet cannot be asked whether those "
          "pods still run: what ended pods held is free after the next pod that gets a device",
          {{"why", ask_error_}});
    }
    return;
  }
  ask_error_.clear();
  const plugin::HeldDevices was = held_;
  Read(file_.parent_path());
  if (asked != version_) return;  // written anew meanwhile: the answer may be older
  before_ = std::exchange(latest_, *std::move(answer));
  Settle();
  if (held_ != was) changed_();
}

}  // namespace ndp::node
