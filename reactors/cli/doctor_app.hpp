#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/client/client_pool.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/doctor_report.hpp"
#include "rw/reactors/cli/kcp_error.hpp"
#include "rw/reactors/cli/leader_settings.hpp"
#include "rw/reactors/cli/output.hpp"
#include "rw/reactors/cli/runtimes_client.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw::cli {

/// `runtime-watcher doctor`: checks an installation step by step, and says what to do about each
/// defect: access to KCP, served kinds, the manager's rights, its Lease, certificates, the Gateway,
/// Watchers with their VirtualServices, roll-outs, each runtime up to a probe of the way of events,
/// and what the leader knows beyond it, and heartbeats. It writes nothing: probes, dry runs and
/// reviews of rights are not persisted. The leader is asked through KCP's API server, or at the
/// address that the settings have.
///
/// What the manager's settings decide it reads from the manager's Lease (leader_settings.hpp).
/// Where that has none, the defaults hold, and a check that depends on them proves nothing.
///
/// The verdict on the landscape (shared/fleet_verdict.hpp) is that of its findings: each FAILED
/// counts, whoever saw it. Where the leader's is another, a finding names what they judge
/// differently. Where the user names runtimes, the verdict is on these alone (judge_named).
///
/// Exit code 0: no check failed, but those of as few runtimes as --tolerate allows; 3: some did; 1:
/// the command itself failed, or KCP has no Kyma that --runtime names.
class doctor_app final : public app {
 public:
  doctor_app(services& with, doctor_settings settings);
  ~doctor_app() override;

  boost::asio::awaitable<int> run() override;

 private:
  template <class T>
  using work = boost::asio::awaitable<T>;
  struct runtime_counts {
    std::size_t begun = 0;
    std::size_t well = 0;
    std::size_t failed = 0;
    std::size_t told = 0;
  };

  work<int> check_all();
  work<void> close();
  work<bool> check_access();
  work<void> report_no_access(kcp_error error);
  work<void> check_names();
  work<void> check_leader_clock(k8s::lease lease);
  work<k8s::result<k8s::lease>> read_lease();
  work<bool> is_renewed(k8s::lease* lease);
  work<void> check_kinds();
  work<void> check_rights();
  work<void> read_settings();
  work<void> check_leader();
  work<void> check_certificate(std::string name, std::string owner);
  work<void> check_gateway();
  work<void> check_watchers();
  work<void> check_rollouts();
  work<void> check_orphans();
  work<void> check_sources();
  work<void> check_without_bootstrapper(const std::set<std::string>* known);
  work<void> check_runtimes();
  work<k8s::result<std::vector<std::string>>> select_kymas();
  work<void> check_some(const std::vector<std::string>* kymas, runtime_counts* counts);
  work<std::optional<finding>> check_runtime(std::string kyma);
  work<std::optional<finding>> check_installation(k8s::client* runtime, std::string kyma);
  work<std::optional<finding>> check_writes(k8s::client* runtime, std::string kyma);
  work<std::optional<finding>> check_events(k8s::client* runtime, std::string kyma);
  work<void> find_duplicates(const boost::json::array* kymas);
  work<void> check_manager();
  work<void> check_heartbeats();
  work<void> compare_verdicts();
  void note_rollout(const boost::json::value& rollout);
  void note_failed(judged_runtime runtime);
  finding_state unwritten(const k8s::failure& error) const;
  fleet_verdict own_verdict();
  bool is_tolerated(const finding& of) const;
  bool is_selected(const std::string& kyma) const;
  bool is_new(const std::string& kyma) const;

  work<void> report(finding_state state, std::string_view check, std::string message,
                    std::string remedy = {});
  /// Of what the manager's settings decide: where they are not known nothing is proven.
  work<void> report_by_settings(finding_state state, std::string_view check, std::string message,
                                std::string remedy = {}, std::string reason = {},
                                std::string about = {});
  work<void> report(finding finding);

  static constexpr std::size_t most_lines = 50;  ///< about runtimes, of one check

  std::chrono::system_clock::time_point now() const;

  const doctor_settings settings_;
  leader_settings leader_;
  std::unique_ptr<k8s::client> kcp_;
  std::unique_ptr<k8s::client> as_manager_;  ///< with the identity whose rights are checked
  std::unique_ptr<k8s::client_pool> runtimes_;
  std::optional<runtimes_client> manager_;
  /// Kymas that claim the cluster of another, by name.
  std::unordered_map<std::string, std::string> duplicates_;
  std::unordered_map<std::string, std::string> invalid_;    ///< Kymas, with what is wrong
  std::unordered_map<std::string, judged_runtime> failed_;  ///< by Kymas: a check has failed
  std::vector<judged_runtime> judged_;                      ///< by the check of each runtime
  std::vector<fleet_fault> paused_;                         ///< roll-outs
  std::optional<std::string> no_leader_;                    ///< why none is known
  std::string stands_back_;                                 ///< why the leader writes nothing
  fleet_verdict verdict_ = {};
  bool gateway_is_valid_ = false;
  std::chrono::seconds clock_ahead_{0};  ///< of this machine, relative to KCP's
  output output_;
  output errors_;
  std::vector<finding> findings_;
  bool is_manager_read_ = false;
  std::optional<fleet_verdict> unasked_ = {};  ///< there is no way to the leader
};

}  // namespace rw::cli
