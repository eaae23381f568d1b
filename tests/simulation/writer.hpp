#pragma once

#include "rw/core/http/client.hpp"

#include "tests/simulation/store.hpp"
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw::simulation {

/// The writing side of a kube-apiserver: calls the webhooks of a write before it stores it, again
/// at each try; ignores those that fail (`failurePolicy: Ignore`); drops writes that a later
/// admission step rejects; tries again after a conflict.
class writer {
 public:
  static constexpr std::uint16_t webhook_port =
      8443;                                           ///< of the pod that is there most of the time
  static constexpr std::uint16_t second_port = 8444;  ///< of another one

  struct state {
    bool calls = true;  ///< the webhook configuration is there
    bool first = true;  ///< that pod is an endpoint of the webhook's Service
    bool second = false;
    bool relabels = true;           ///< labels change, of which reviews make no event
    std::size_t names = 6;          ///< objects of each kind, at most
    double rejected = 0;            ///< part of the writes that a later admission step rejects
    duration latency = {};          ///< from admission to storage, at most
    seconds timeout = seconds(10);  ///< of a call
  };

  /// `watches` has an entry each in the webhook configuration.
  writer(environment& in, store& objects, std::vector<managed_watch> watches);
  ~writer();
  writer(const writer&) = delete;
  writer& operator=(const writer&) = delete;

  /// Begins a write that chance chooses.
  void write();
  /// Replaces all objects of a kind by as many others, unseen by the webhook.
  void turn_over(std::size_t kind);
  /// Deletes what there is more of each kind, unseen by the webhook.
  void delete_surplus(std::size_t most);

  state now;

 private:
  enum class operation : std::uint8_t { create, spec, status, note, label, begin_delete, remove };
  struct attempt {
    std::size_t kind;
    std::string name;
    operation what;
    unsigned value;
  };

  std::string name_of(std::size_t kind, std::size_t number);
  bool makes_sense(const attempt& write, const model_object* before) const;
  std::optional<model_object> result_of(const attempt& write, const model_object* before) const;
  std::vector<std::string> managers_for(const attempt& write, const model_object* before,
                                        const std::optional<model_object>& after) const;
  std::string review_of(const attempt& write, const model_object* before,
                        const std::optional<model_object>& after, bool dry_run) const;
  boost::asio::awaitable<void> perform(attempt write);
  boost::asio::awaitable<void> call(std::string manager, std::string review);

  environment& in_;
  store& store_;
  const std::vector<managed_watch> watches_;
  core::metrics metrics_;
  std::unique_ptr<core::transport> plain_ = core::make_plain_transport();
  http::client first_;
  http::client second_;
  core::task_group tasks_;
  std::uint64_t uids_ = 0;
  std::map<std::size_t, unsigned> turns_;  ///< by kind: its objects' names have another begin
};

}  // namespace rw::simulation
