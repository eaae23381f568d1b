#include "rw/reactors/watcher_installer/cluster_claims.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/k8s/objects/url.hpp"
#include "rw/reactors/runtime_controller/runtime_access.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/tls/ca_bundle.hpp"
#include "rw/tls/digest.hpp"

#include <algorithm>
#include <cctype>
#include <span>
#include <utility>

namespace rw::watcher_installer {
namespace {

using k8s::object;
using k8s::object_key;

constexpr const char* by_kyma = "watcher-installer/kyma";
constexpr const char* by_cluster = "watcher-installer/cluster";

std::string label_of(const object& from, std::string_view name) {
  if (!from) return {};
  const auto value = from.parse();
  return std::string(k8s::label(value, name));
}

/// Names are short, since the names of thousands of clusters are recorded.
std::string name_of(const std::string& identity) {
  const auto digest = tls::sha256(identity);
  return core::hex(std::span(digest).first(10));
}

std::string id_of(const object& kyma) {
  return cluster_of_id(label_of(kyma, runtime_id_label));
}

std::string read_address(const object& secret) {
  const auto text = kubeconfig_in(secret);
  if (!text || label_of(secret, kyma_name_label).empty()) return {};
  return cluster_of_kubeconfig(*text);
}

void add(const object_key& key, std::vector<object_key>& into) {
  if (std::ranges::find(into, key) == into.end()) into.push_back(key);
}

}  // namespace

std::string cluster_of_id(std::string_view runtime_id) {
  return runtime_id.empty() ? std::string() : name_of("id " + std::string(runtime_id));
}

std::string cluster_of_kubeconfig(const std::string& kubeconfig) {
  const auto config =
      k8s::parse_foreign_kubeconfig(kubeconfig, "kubeconfig", k8s::local_servers::allowed);
  if (!config) return {};
  const auto url = k8s::parse_server_url(config->server);
  if (!url) return {};
  auto host = url->host;
  for (auto& each : host) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  const auto ca = tls::ca_bundle::parse(config->ca);
  return name_of("server " + host + ":" + std::to_string(url->port) + url->prefix + " " +
                 (ca ? ca->digest() : std::string()));
}

cluster_claims::cluster_claims(k8s::informer& kymas, k8s::informer& kubeconfigs)
    : kymas_(kymas), kubeconfigs_(kubeconfigs) {
  kubeconfigs_.add_index(by_kyma, [](const object& object, std::vector<std::string>& values) {
    auto name = label_of(object, kyma_name_label);
    if (!name.empty()) values.push_back(std::move(name));
  });
  kubeconfigs_.add_index(by_cluster,
                         [this](const object& object, std::vector<std::string>& values) {
                           auto address = address_in(object);
                           if (!address.empty()) values.push_back(std::move(address));
                         });
  kymas_.add_index(by_cluster, [](const object& object, std::vector<std::string>& values) {
    auto id = id_of(object);
    if (!id.empty()) values.push_back(std::move(id));
  });
}

cluster_claims::~cluster_claims() {
  for (const auto* const index : {by_kyma, by_cluster}) kubeconfigs_.remove_index(index);
  kymas_.remove_index(by_cluster);
}

std::string cluster_claims::address_in(const object& secret) const {
  auto& known = addresses_.use(secret.key());
  if (!known.of || !k8s::same_state(known.of, secret)) known = {secret, read_address(secret)};
  return known.name;
}

std::vector<object> cluster_claims::kubeconfigs_of(std::string_view kyma) const {
  return kubeconfigs_.objects().by_index(by_kyma, kyma);
}

cluster_claim cluster_claims::claim_of(const object& kyma) const {
  const auto value = kyma.parse();

  cluster_claim out{
      .kyma = kyma.key(),
      .uid = std::string(kyma.uid()),
      .created = k8s::created_at(value).value_or(std::chrono::system_clock::time_point())};
  if (auto id = id_of(kyma); !id.empty()) out.clusters.push_back(std::move(id));
  const auto secrets = kubeconfigs_of(kyma.name());
  auto address = secrets.size() == 1 ? address_in(secrets.front()) : std::string();
  out.is_incomplete = address.empty();
  if (!address.empty()) out.clusters.push_back(std::move(address));
  return out;
}

void cluster_claims::add_sharing(const std::string& cluster, std::vector<object_key>& into) const {
  for (const auto& kyma : kymas_.objects().by_index(by_cluster, cluster)) add(kyma.key(), into);
  for (const auto& secret : kubeconfigs_.objects().by_index(by_cluster, cluster)) {
    add({std::string(kcp_namespace), label_of(secret, kyma_name_label)}, into);
  }
}

/// The record counts as well: its Kyma may have no readable kubeconfig now.
std::vector<cluster_claim> cluster_claims::rivals_of(const cluster_claim& self) const {
  std::vector<object_key> keys;
  for (const auto& cluster : self.clusters) {
    add_sharing(cluster, keys);
    if (const auto* const owner = owners_.recorded(cluster)) add(*owner, keys);
  }
  std::vector<cluster_claim> out;
  for (const auto& key : keys) {
    const auto kyma = key == self.kyma ? object() : kymas_.objects().get(key);
    if (kyma) out.push_back(claim_of(kyma));
  }
  return out;
}

std::string cluster_claims::other_owner(const object& kyma) {
  const auto self = claim_of(kyma);
  const auto rivals = rivals_of(self);
  const auto* const owner = owners_.decide(self, rivals);
  return owner == nullptr ? std::string() : owner->kyma.name;
}

std::string cluster_claims::find_other_owner(const object& kyma) const {
  const auto self = claim_of(kyma);
  const auto rivals = rivals_of(self);
  auto owners = owners_;
  const auto* const owner = owners.decide(self, rivals);
  return owner == nullptr ? std::string() : owner->kyma.name;
}

std::string cluster_claims::heir(const object& kyma) const {
  std::vector<object_key> keys;
  for (const auto& cluster : claim_of(kyma).clusters) add_sharing(cluster, keys);
  for (const auto& key : keys) {
    const auto other = key == kyma.key() ? object() : kymas_.objects().get(key);
    if (other && !k8s::is_being_deleted(other.parse())) return key.name;
  }
  return {};
}

std::vector<object_key> cluster_claims::sharing_id(const object& kyma) const {
  std::vector<object_key> out;
  const auto id = id_of(kyma);
  if (!id.empty()) add_sharing(id, out);
  if (!kyma) return out;
  for (const auto& secret : kubeconfigs_of(kyma.name())) {
    for (const auto& key : sharing_address(secret)) add(key, out);
  }
  std::erase(out, kyma.key());
  return out;
}

std::vector<object_key> cluster_claims::sharing_address(const object& secret) const {
  std::vector<object_key> out;
  const auto address = secret ? address_in(secret) : std::string();
  if (!address.empty()) add_sharing(address, out);
  return out;
}

}  // namespace rw::watcher_installer
