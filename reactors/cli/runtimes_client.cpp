#include "rw/reactors/cli/runtimes_client.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/k8s/objects/url.hpp"
#include "rw/reactors/admin/admin.hpp"
#include "rw/reactors/cli/leader_secret.hpp"
#include "rw/reactors/cli/leader_settings.hpp"
#include "rw/reactors/cli/version.hpp"
#include "rw/tls/files.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr unsigned misdirected = 421;  ///< Misdirected Request, of a replica that does not lead
constexpr unsigned service_unavailable = 503;  ///< Service Unavailable: too many diffs at once
constexpr const char* once_more = "run it again in 5 s";
constexpr const char* at_its_address =
    "if the pod has just ended, wait until another leads; a manager that runs outside of KCP's "
    "pods is asked at the address of its metrics: --address HOST:PORT";
constexpr const char* shadow_at_its_address =
    "a leader with --shadow does not write this Secret: ask it at the address of its metrics: "
    "--address HOST:PORT";
constexpr const char* see_address =
    "see that a manager runs, and that this is a manager's address (its --metrics-address); from "
    "outside of its pod it also wants --token-file";
constexpr int most_tries = 8;
/// In a pod of the manager.
const core::host_port own_pod{"127.0.0.1", 8080};

bool is_page_of_runtimes(const json::value& of) {
  const auto* const states = k8s::find(of, {"states"});
  return k8s::find_array(of, {"runtimes"}) != nullptr && states != nullptr && states->is_object();
}

/// Runtimes chose some of the texts, and a terminal shows them: nothing in them controls it. The
/// depth is bounded by read_json.
void make_printable(json::value& value) {
  if (auto* const text = value.if_string()) *text = core::printable(*text);
  if (auto* const array = value.if_array()) {
    for (auto& element : *array) make_printable(element);
  }
  if (auto* const object = value.if_object()) {
    for (auto& [name, member] : *object) make_printable(member);
  }
}

}  // namespace

fleet_verdict runtimes_client::verdict_without(const answer& of) {
  auto out = no_leader(of.error);
  // At an address where nobody responds as a manager nobody leads, as far as can be told.
  const bool is_known = !of.next.empty() && of.next != see_address;
  if (is_known || of.other_leads) out.message = "unknown: " + of.error;
  return out;
}

runtimes_client::runtimes_client(services& with, core::host_port address, std::string token_file)
    : token_file_(std::move(token_file)) {
  connect_to(with, std::move(address));
}

runtimes_client::runtimes_client(k8s::client& kcp, k8s::object_key lease)
    : kcp_(&kcp), lease_(std::move(lease)) {}

runtimes_client::runtimes_client(services& with, const leader_access& way, std::string user_agent)
    : lease_{way.lease_namespace, way.lease_name}, token_file_(way.token_file) {
  auto address = way.address;
  if (!address && !token_file_.empty()) address = own_pod;
  k8s::config config;
  if (!address) {
    config = load_kcp_config(way.kcp);
    if (config.source == "in-cluster") address = own_pod;
  }
  if (address) {
    connect_to(with, std::move(*address));
    return;
  }
  own_kcp_ = std::make_unique<k8s::client>(
      with.executor, std::move(config),
      k8s::client_options{.name = "kcp",
                          .user_agent = std::move(user_agent),
                          .field_manager = std::string(default_field_manager),
                          .deadline = std::chrono::seconds(20),
                          .retries = 1},
      with.for_client());
  kcp_ = own_kcp_.get();
}

void runtimes_client::connect_to(services& with, core::host_port address) {
  address_ = std::move(address);
  plain_ = core::make_plain_transport();
  client_.emplace(with.executor,
                  http::client_options{.name = "manager",
                                       .host = address_.host,
                                       .port = address_.port,
                                       .limits = {.body_bytes = 64u << 20}},
                  http::client_environment{*plain_, with.watchdog, with.log, with.metrics});
}

asio::awaitable<void> runtimes_client::close() {
  if (client_) co_await client_->close();
  if (own_kcp_) co_await own_kcp_->close();
}

asio::awaitable<runtimes_client::page> runtimes_client::get_at_address(const std::string* target) {
  http::request request;
  request.method = "GET";
  request.target = *target;
  if (!token_file_.empty()) {
    auto token = need(tls::read_file(token_file_), "--token-file");
    while (!token.empty() && token.back() <= ' ') token.pop_back();
    request.headers.add("authorization", "Bearer " + token);
  }
  page out;
  const auto authority = core::to_string(address_);
  http::response response;
  // Behind a Service another connection may reach the leader.
  for (int tries = 0; tries == 0 || (response.status == misdirected && tries < most_tries);
       ++tries) {
    response.clear();
    http::client_slot slot;
    auto error = co_await client_->acquire(slot);
    if (!error) error = co_await slot.exchange(request, response);
    if (!error) continue;
    out.error = {"no response from " + authority + ": " + error.message(), see_address};
    co_return out;
  }
  if (response.status == misdirected) {
    const auto told = k8s::read_json(response.body);
    out.error.message = told ? std::string(k8s::find_string(*told, {"message"})) : response.body;
    out.no_way = true;
    out.other_leads = told && !k8s::find_string(*told, {"leader"}).empty();
  } else if (response.status != 200) {
    out.error.message =
        authority + " responds " + std::to_string(response.status) + ": " + response.body;
    out.error.next = response.status == service_unavailable ? once_more : see_address;
  }
  out.error.message = core::printable(out.error.message);
  out.body = std::move(response.body);
  co_return out;
}

/// Finds the pod of the Lease's holder, and what it takes to be shown its pages.
asio::awaitable<runtimes_client::proxied_pod> runtimes_client::find_pod() {
  proxied_pod out;
  const auto lease = co_await kcp_->get(k8s::leases_type(), lease_);
  if (!lease) {
    out.error = describe(
        lease.error(), {"get", "coordination.k8s.io", "leases", "", lease_.ns, lease_.name},
        "install the manager (deploy/README.md), or use the kubeconfig of the control plane that "
        "has it; its Lease may have another name: --lease-namespace, --lease-name");
    co_return out;
  }
  const std::string holder(k8s::find_string(*lease, {"spec", "holderIdentity"}));
  if (holder.empty()) {
    out.error.message = "no manager holds Lease " + to_string(lease_);
    co_return out;
  }
  const auto settings = parse_leader_settings(k8s::annotation(*lease, settings_annotation));
  const k8s::object_key key{settings.state_namespace, std::string(leader_secret::name)};
  const auto secret = co_await kcp_->get(secrets_type(), key);
  if (!secret) {
    out.error = describe(
        secret.error(), {"get", "", "secrets", "", key.ns, key.name},
        settings.shadow ? shadow_at_its_address : "the leader writes this Secret: see its log");
    co_return out;
  }
  const auto leader = read_leader_secret(*secret, holder);
  if (!leader) {
    out.error.message = "Secret " + to_string(key) + " is not of " + holder + ", which leads";
    co_return out;
  }
  const auto path = proxy_path(lease_.ns, *leader);
  if (path) {
    out.token = leader->token;
    out.target = *path;
    out.name = pod_of(holder);
  } else {
    out.error = {holder + ", which holds Lease " + to_string(lease_) + ", is no pod",
                 at_its_address};
  }
  co_return out;
}

asio::awaitable<runtimes_client::page> runtimes_client::get_by_proxy(const proxied_pod* pod,
                                                                     const std::string* target) {
  page out;
  http::fields beside;
  beside.add(admin::token_field, pod->token);
  auto got = co_await kcp_->raw("GET", pod->target + *target, {}, {}, {}, std::move(beside));
  if (got) {
    out.body = std::move(*got);
    co_return out;
  }
  const auto& error = got.error();
  out.error.message = error.message;
  // Without a Status the response is that of the pod, or of what stands before it.
  const bool denied = error.is(k8s::errc::forbidden) || error.is(k8s::errc::unauthorized);
  if (denied && !error.reason.empty()) {
    out.error = describe(error, {"get", "", "pods", "proxy", lease_.ns, pod->name}, {});
  }
  if (error.is(k8s::errc::not_found) && !error.reason.empty()) {
    out.error = {"the leader " + pod->name + " is no pod in the namespace " + lease_.ns + ": " +
                     error.message,
                 at_its_address};
  }
  if (error.status == service_unavailable && error.reason.empty()) out.error.next = once_more;
  out.no_way = denied || error.is(k8s::errc::not_found);
  co_return out;
}

/// Sets the response's error if there is none.
asio::awaitable<runtimes_client::proxied_pod> runtimes_client::find_way(answer* to) {
  proxied_pod pod;
  if (kcp_ != nullptr) pod = co_await find_pod();
  to->error = pod.error.message;
  to->next = pod.error.next;
  to->no_way = !to->error.empty();
  co_return pod;
}

/// What responds is no manager.
void runtimes_client::note_stranger(const proxied_pod* pod, answer* to) const {
  to->error = (kcp_ == nullptr ? core::to_string(address_) : pod->target) +
              " does not respond as a manager does";
  if (kcp_ == nullptr) to->next = see_address;
}

/// Reads one JSON value; sets the response's error otherwise.
asio::awaitable<json::value> runtimes_client::get(const proxied_pod* pod, const std::string* target,
                                                  answer* to) {
  page got;
  if (kcp_ == nullptr) {
    got = co_await get_at_address(target);
  } else {
    got = co_await get_by_proxy(pod, target);
  }
  to->error = got.error.message;
  to->next = got.error.next;
  to->no_way = got.no_way;
  to->other_leads = got.other_leads;
  if (!to->error.empty()) co_return nullptr;
  auto read = k8s::read_json(got.body);
  if (read && read->is_object()) co_return std::move(*read);
  note_stranger(pod, to);
  co_return nullptr;
}

/// Says it once where the manager has another version.
void runtimes_client::compare_version(answer& of) {
  const std::string version(k8s::find_string(of.runtimes, {"version"}));
  const bool is_new = std::exchange(compared_, version) != version;
  if (is_new && version != version_text()) {
    of.warning = "this program has version " + version_text() + ", and the manager " + version +
                 ": what they say may differ";
  }
}

asio::awaitable<runtimes_client::answer> runtimes_client::ask_object(std::string target) {
  answer out;
  const auto pod = co_await find_way(&out);
  if (out.no_way) co_return out;
  out.runtimes = co_await get(&pod, &target, &out);
  if (out.error.empty()) compare_version(out);
  co_return out;
}

asio::awaitable<runtimes_client::answer> runtimes_client::ask(std::string query) {
  answer out;
  const auto pod = co_await find_way(&out);
  if (out.no_way) co_return out;
  for (std::string target = query;;) {
    auto next = co_await get(&pod, &target, &out);
    if (out.error.empty() && !is_page_of_runtimes(next)) {
      note_stranger(&pod, &out);
    }
    if (!out.error.empty()) co_return out;
    make_printable(next);
    const std::string more(k8s::find_string(next, {"continue"}));
    if (out.runtimes.is_null()) {
      out.runtimes = std::move(next);
    } else {
      auto& all = out.runtimes.at("runtimes").as_array();
      for (auto& entry : next.at("runtimes").as_array()) all.push_back(std::move(entry));
    }
    if (more.empty()) break;
    target = query + "&continue=";
    k8s::append_percent_encoded(target, more, "");
  }
  out.runtimes.as_object().erase("continue");
  compare_version(out);
  co_return out;
}

}  // namespace rw::cli
