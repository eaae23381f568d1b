// `/diff`: what the next passes of this leader would write to one runtime.

#include "rw/reactors/cli/manager_app.hpp"
#include "rw/reactors/cli/near_names.hpp"
#include "rw/reactors/cli/rollout_text.hpp"
#include "rw/reactors/cli/runtime_diff.hpp"
#include "rw/reactors/cli/version.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/tls/xfcc.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

/// A diff takes some fifty requests to a runtime, which may be slow, and memory for its objects.
constexpr std::size_t diffs_at_once = 4;
constexpr std::size_t most_bytes = 4u << 20;

/// Takes a place in a set for as long as it lives.
struct running_diff {
  running_diff(std::set<std::string>& in, const std::string& name)
      : all(in), at(in.insert(name).first) {}
  ~running_diff() { all.erase(at); }
  running_diff(const running_diff&) = delete;
  running_diff& operator=(const running_diff&) = delete;

  std::set<std::string>& all;
  std::set<std::string>::iterator at;
};

}  // namespace

asio::awaitable<std::vector<pass_preview>> manager_app::preview_passes(k8s::object_key kyma) {
  std::vector<pass_preview> out;
  // The deadline of the client is 20 s.
  const auto until = services_.clock.now() + preview_limit;
  auto of_watcher = co_await installer_->preview(kyma);
  out.push_back(std::move(of_watcher));
  const auto runtimes =
      runtime_config_ ? runtime_config_->runtimes_of(kyma.name) : std::vector<k8s::object_key>();
  for (const auto& runtime : runtimes) {
    const auto left = until - services_.clock.now();
    auto of_bootstrapper = co_await runtime_config_->preview(runtime, left);
    out.push_back(std::move(of_bootstrapper));
  }
  for (auto& each : out) {
    const auto stored = rollouts_.objects().get({std::string(kcp_namespace), each.component});
    if (!stored) continue;
    const auto rollout = stored.parse();
    if (auto pinned = waiting_sources(rollout); !pinned.empty()) {
      each.waits.push_back(std::move(pinned));
    }
    const auto fault = each.awaits_turn ? fault_of_rollout(rollout) : std::nullopt;
    if (fault) each.waits.push_back(fault->message + ": " + fault->next);
  }
  const std::string all_wait = awaits_klm_    ? "it is not known yet whether lifecycle-manager runs"
                               : stands_back_ ? stands_back_text()
                               : *dry_run_ ? "this manager runs with --shadow: nothing is written"
                                           : "";
  if (!all_wait.empty()) out.front().waits.push_back(all_wait);
  co_return out;
}

asio::awaitable<admin::json_page> manager_app::diff(std::string query) {
  constexpr std::string_view parameter = "runtime=";
  const auto name =
      tls::percent_decode(std::string_view(query).substr(std::min(parameter.size(), query.size())));
  if (!query.starts_with(parameter) || !name) {
    co_return admin::json_page{400, "there is the parameter runtime, the name of a Kyma"};
  }
  if (const auto reasons = not_ready(); !reasons.empty()) {
    co_return admin::json_page{503, reasons.substr(0, reasons.find('\n'))};
  }
  const k8s::object_key kyma{std::string(kcp_namespace), *name};
  json::object out;
  if (!kymas_.objects().get(kyma)) {
    std::vector<std::string> known;
    kymas_.objects().for_each([&](const k8s::object& each) { known.emplace_back(each.name()); });
    std::ranges::sort(known);
    out["error"] = unknown_kyma(*name, known);
  } else if (diffs_.size() >= diffs_at_once || diffs_.contains(*name)) {
    co_return admin::json_page{503, "other diffs are being computed: try again"};
  } else {
    const running_diff place(diffs_, *name);
    auto previews = co_await preview_passes(kyma);
    out = json_of(std::move(previews), most_bytes);
  }
  out["runtime"] = *name;
  out["version"] = version_text();
  co_return admin::json_page{.body = json::serialize(out)};
}

}  // namespace rw::cli
