// Kymas that claim another one's cluster, by what the manager decides by.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/doctor_app.hpp"
#include "rw/reactors/shared/cluster_owners.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/watcher_installer/cluster_claims.hpp"
#include "rw/reactors/watcher_installer/cluster_records.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using watcher_installer::cluster_of_id;
using watcher_installer::cluster_of_kubeconfig;

using addresses = std::unordered_map<std::string, std::vector<std::string>>;

cluster_claim claim_of(const json::value& kyma, const addresses& known) {
  cluster_claim out{
      .kyma = k8s::key_of(kyma),
      .uid = std::string(k8s::uid_of(kyma)),
      .created = k8s::created_at(kyma).value_or(std::chrono::system_clock::time_point())};
  auto id = cluster_of_id(k8s::label(kyma, runtime_id_label));
  if (!id.empty()) out.clusters.push_back(std::move(id));
  const auto found = known.find(out.kyma.name);
  const bool is_known = found != known.end() && found->second.size() == 1;
  out.is_incomplete = !is_known || found->second.front().empty();
  if (!out.is_incomplete) out.clusters.push_back(found->second.front());
  return out;
}

/// The clusters in kubeconfigs, by Kyma.
addresses addresses_in(const json::array& secrets) {
  addresses out;
  for (const auto& secret : secrets) {
    const auto kyma = k8s::label(secret, kyma_name_label);
    const auto text = k8s::secret_data(secret, "config");
    if (!kyma.empty()) out[std::string(kyma)].push_back(text ? cluster_of_kubeconfig(*text) : "");
  }
  return out;
}

/// Reads the records of a leader. A record that can't be read is as if there were none.
asio::awaitable<watcher_installer::cluster_record_map> read_records(k8s::client* kcp,
                                                                    std::string ns) {
  watcher_installer::cluster_record_map out;
  for (std::size_t i = 0; i < watcher_installer::record_slots; ++i) {
    const auto got = co_await kcp->get(secrets_type(), {ns, watcher_installer::record_name(i)});
    if (!got) continue;
    const auto text = k8s::secret_data(*got, watcher_installer::records_key);
    out.merge(watcher_installer::parse_records(text.value_or(std::string())));
  }
  co_return out;
}

}  // namespace

asio::awaitable<void> doctor_app::find_duplicates(const json::array* kymas) {
  const auto secrets = co_await kcp_->list(
      secrets_type(), {.ns = std::string(kcp_namespace), .labels = std::string(kyma_name_label)});
  if (!secrets) co_return;  // the check of each runtime says so
  const auto known = addresses_in(secrets->at("items").as_array());
  std::vector<cluster_claim> claims;
  std::unordered_map<std::string, std::vector<std::size_t>> by_cluster;
  for (const auto& kyma : *kymas) {
    claims.push_back(claim_of(kyma, known));
    for (const auto& cluster : claims.back().clusters) {
      by_cluster[cluster].push_back(claims.size() - 1);
    }
  }
  const bool shares = std::ranges::any_of(
      by_cluster, [](const auto& cluster) { return cluster.second.size() > 1; });
  if (!shares) co_return;
  const auto records = co_await read_records(kcp_.get(), leader_.state_namespace);
  cluster_owners owners;
  for (const auto& claim : claims) {
    const auto found = records.find(claim.uid);
    if (found != records.end()) owners.restore(claim.kyma, claim.uid, found->second.clusters);
  }
  for (const auto& claim : claims) {
    std::vector<cluster_claim> rivals;
    for (const auto& cluster : claim.clusters) {
      for (const auto other : by_cluster[cluster]) {
        if (claims[other].uid != claim.uid) rivals.push_back(claims[other]);
      }
    }
    const auto* const owner = owners.decide(claim, rivals);
    if (owner != nullptr) duplicates_.emplace(claim.kyma.name, owner->kyma.name);
  }
}

}  // namespace rw::cli
