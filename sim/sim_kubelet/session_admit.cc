// Admission: how a container gets its devices.
#include <algorithm>

#include "sim_kubelet/session.h"

namespace ndp::sim_kubelet {

Result<doc::Value> Kubelet::Session::Admit(const ContainerRequest& request) {
  const std::lock_guard one(admission_);
  Result<doc::Value> result = AdmitKnown(request);
  if (!result.ok()) {
    deps_.log.Write("pod-rejected", {{"pod", request.pod},
                                     {"container", request.container},
                                     {"resource", request.resource},
                                     {"error", result.error().message()}});
  }
  return result;
}

Result<doc::Value> Kubelet::Session::AdmitKnown(const ContainerRequest& request) {
  Choice choice;
  std::shared_ptr<PluginClient> client;
  doc::Value answer = doc::Value::Map();
  {
    const std::lock_guard lock(mutex_);
    if (book_.DevicesOf(request.resource) == nullptr) {
      deps_.log.Write(
          "admitted-without-devices",
          {{"pod", request.pod}, {"container", request.container}, {"resource", request.resource}});
      answer.Set("devices", doc::Value::List());
      answer.Set("note", "the kubelet knows no resource " + request.resource +
                             ": as with the real one, the container starts without it");
      return answer;
    }
    const auto unlisted = book_.HeldButUnlisted();
    if (deps_.options.topology_policy && unlisted) {
      const std::string why = "device " + *unlisted +
                              " is held by a pod and missing from the list: with a topology policy "
                              "the real kubelet crashes";
      deps_.crash(why);
      return Error(Code::kInternal, why);
    }
    NDP_TRY(choice, book_.Begin(request));
    if (const auto found = connections_.find(choice.client); found != connections_.end()) {
      client = found->second.client;
    }
  }
  answer.Set("devices", ToJsonList(choice.chosen));
  if (choice.already_held || request.count == 0) return answer;

  const auto abandon = [&](Error error) {
    const std::lock_guard lock(mutex_);
    book_.Abandon(choice, request.resource);
    return error;
  };
  if (client == nullptr) return abandon(Error(Code::kUnavailable, "endpoint has been stopped"));
  const MonoTime begin = Now();
  while (choice.question) {
    const auto preferred = client->Preferred(*choice.question, request.count);
    if (!preferred.ok()) return abandon(preferred.error());
    deps_.log.Write("preferred", {{"resource", request.resource},
                                  {"available", ToJsonList(choice.question->available)},
                                  {"must_include", ToJsonList(choice.question->must_include)},
                                  {"size", request.count},
                                  {"answer", ToJsonList(*preferred)}});
    Status status;
    {
      const std::lock_guard lock(mutex_);
      status = book_.Answer(request, *preferred, choice);
    }
    if (!status.ok()) return abandon(status.error());
  }
  const std::vector<std::string> ids(choice.chosen.begin(), choice.chosen.end());
  const auto allocated = client->Allocate(ids);
  if (!allocated.ok()) return abandon(allocated.error());
  if (choice.options.pre_start) {
    const Status started = client->PreStart(ids);
    if (!started.ok()) return abandon(started.error());
  }
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(Now() - begin).count();

  const std::lock_guard lock(mutex_);
  if (const Status kept = book_.Commit(request, choice, allocated->serialised); !kept.ok()) {
    deps_.crash(kept.error().message());
    return kept.error();
  }
  WriteCheckpoint();
  answer.Set("devices", ToJsonList(choice.chosen));
  answer.Set("response", allocated->json);
  deps_.log.Write("allocated", {{"pod", request.pod},
                                {"container", request.container},
                                {"resource", request.resource},
                                {"devices", ToJsonList(choice.chosen)},
                                {"response", allocated->json},
                                {"took_us", us}});
  return answer;
}

Status Kubelet::Session::ReleasePod(const std::string& pod, bool keep_checkpoint) {
  const std::lock_guard lock(mutex_);
  const auto& holdings = book_.holdings();
  if (std::ranges::none_of(holdings, [&](const Holding& held) { return held.pod == pod; })) {
    return Error(Code::kNotFound, "pod '" + pod + "' holds nothing");
  }
  book_.Release(pod);
  if (!keep_checkpoint) WriteCheckpoint();
  deps_.log.Write("pod-gone", {{"pod", pod}});
  return {};
}

}  // namespace ndp::sim_kubelet
