// A kubelet's device manager for tests, over real sockets in a folder of the test's: serves
// Registration, dials back within Register as kubelets do, and reads the lists.
//
// Any thread. What waits gives up after thirty seconds and then fails the test by its result.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ndp {

class FakeKubelet {
 public:
  struct Device {
    bool healthy = true;
    std::vector<int> numa_nodes;
    bool operator==(const Device&) const = default;
  };
  using List = std::map<std::string, Device>;

  struct Answer {
    int code = 0;  // gRPC's
    std::string message;
    // Of the first container, if any.
    std::map<std::string, std::string> envs;
    std::vector<std::string> device_specs;
    std::size_t containers = 0;
    std::vector<std::string> ids;  // of a preferred allocation
  };

  // Removes every socket in the folder, as a starting kubelet does, and serves.
  explicit FakeKubelet(std::filesystem::path folder);
  // As a kubelet that exits: connections end, its socket file stays.
  ~FakeKubelet();

  // The error that Register answers from now on; empty: none.
  void RefuseWith(std::string message);
  // Register waits (after dialling back) until the function returns false.
  void HangWhile(std::function<bool()> hanging);

  // The endpoints registered so far, also of refused calls.
  std::vector<std::string> registrations() const;
  bool WaitForRegistrations(std::size_t count) const;
  // The list of the newest registration; waits until the predicate holds.
  bool WaitForList(const std::function<bool(const List&)>& predicate) const;
  std::size_t lists() const;  // received in all, of all registrations
  bool WaitForLists(std::size_t count) const;
  bool WaitForStreamEnd() const;  // of the newest registration
  // Closes the newest registration's stream and connection.
  void DropStream();

  // At the newest registration.
  Answer Allocate(const std::vector<std::vector<std::string>>& containers);
  Answer Prefer(const std::vector<std::string>& available, const std::vector<std::string>& must,
                int size);
  bool PreStart();
  // A stream of somebody else on the newest endpoint, until the returned handle goes.
  std::shared_ptr<void> ExtraStream(std::size_t lists);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace ndp
