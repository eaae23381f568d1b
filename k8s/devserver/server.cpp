#include "rw/k8s/devserver/server.hpp"

#include "rw/core/backoff.hpp"
#include "rw/core/http/server.hpp"
#include "rw/core/json_text.hpp"
#include "rw/core/network.hpp"
#include "rw/core/task_group.hpp"
#include "rw/k8s/devserver/admission_gate.hpp"
#include "rw/k8s/devserver/api.hpp"
#include "rw/k8s/devserver/default_objects.hpp"
#include "rw/k8s/devserver/garbage_collector.hpp"
#include "rw/k8s/devserver/server_memory.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/qualified_name.hpp"
#include "rw/tls/transport.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/object.hpp>

#include <array>
#include <stdexcept>

namespace rw::k8s::devserver {
namespace {

namespace asio = boost::asio;

constexpr std::array first_namespaces{"default", "kube-node-lease", "kube-public", "kube-system"};

template <class T>
T need(tls::result<T> made, std::string_view purpose) {
  if (made.has_error()) {
    throw std::runtime_error("embedded API server: " + std::string(purpose) + ": " +
                             made.error().message());
  }
  return std::move(*made);
}

tls::issuer make_ca(const server_options& options) {
  tls::certificate_request wanted;
  wanted.common_name = options.name + " CA";
  wanted.validity = std::chrono::hours(24 * 3650);
  return need(tls::issuer::create(wanted), "CA");
}

std::shared_ptr<tls::credentials> make_credentials(const server_options& options,
                                                   const tls::issuer& ca) {
  tls::certificate_request wanted;
  wanted.common_name = options.name;
  wanted.dns_names = options.host_names;
  wanted.ips = {"127.0.0.1", "::1"};
  const auto address = options.address.address();
  if (!address.is_unspecified() && !address.is_loopback()) {
    wanted.ips.push_back(address.to_string());
  }
  wanted.server_auth = true;
  wanted.validity = std::chrono::hours(24 * 3650);
  const auto trusted = ca.certificate_pem() + options.client_ca;
  if (!options.certificate.empty()) {
    return need(tls::credentials::from_text({options.certificate, options.key, trusted}),
                "credentials");
  }
  const auto pair = need(ca.issue(wanted), "certificate");
  return need(tls::credentials::from_text({pair.certificate, pair.key, trusted}), "credentials");
}

std::shared_ptr<server_memory> make_memory(const server_options& options) {
  auto ca = make_ca(options);
  auto own = make_credentials(options, ca);
  return std::make_shared<server_memory>(std::move(ca), std::move(own), options.make_random());
}

std::unique_ptr<core::transport> make_transport(const asio::any_io_executor& executor,
                                                const server_options& options,
                                                const server_memory& memory) {
  if (!options.tls) return core::network::of(executor).make_plain();
  tls::server_options tls;
  tls.request_client_certificate = true;
  tls.alpn = options.protocols;
  return need(tls::make_server_transport(memory.credentials, std::move(tls)), "TLS");
}

http::server_options http_options(const server_options& options) {
  http::server_options result;
  result.name = options.name;
  result.address = options.address;
  result.limits.connections = 65'536;
  result.limits.streams = 1'000;
  result.limits.header_bytes = 64 * 1024;
  result.limits.buffered_bytes = 1u << 30;  // long lists to many clients
  return result;
}

std::string quoted(std::string_view text) {
  std::string out;
  core::append_json_string(out, text);
  return out;
}

}  // namespace

class server::implementation {
 public:
  implementation(asio::any_io_executor executor, server_options options,
                 server_environment environment, std::shared_ptr<server_memory> memory)
      : executor_(executor),
        options_(std::move(options)),
        environment_(environment),
        memory_(memory ? std::move(memory) : make_memory(options_)),
        clusters_(memory_->clusters),
        transport_(make_transport(executor, options_, *memory_)),
        schedule_(environment.clock, executor),
        counters_(environment.metrics, options_.name),
        reads_(schedule_, counters_, options_.bookmark_interval),
        planner_(environment.clock, memory_->random),
        gate_(executor,
              {environment.clock, environment.watchdog, environment.log, environment.metrics},
              options_.services),
        writes_(
            {environment.clock, planner_, gate_, options_.object_bytes,
             [this](const std::shared_ptr<cluster>& in, const resource& of, const change& change) {
               gate_.follow(*in, of, change);
               collector_.follow(in, of, change);
             }}),
        collector_(executor, {environment.clock, environment.log, writes_, planner_}),
        reviews_({environment.clock, memory_->users, options_.audiences, options_.authorization}),
        control_([this] { http_.drop_connections(); }),
        api_({executor, environment.clock, environment.metrics, clusters_, memory_->users, reads_,
              reviews_, writes_, options_.body_bytes, options_.authorization,
              options_.storage_delay, options_.refuse_unsupported, options_.version,
              options_.root_cluster, options_.test_control ? &control_ : nullptr, options_.pods}),
        http_(executor, http_options(options_), api_,
              {*transport_, environment.watchdog, environment.log, environment.metrics}) {}

  void add_cluster(std::string_view name);
  void remove_cluster(std::string_view name);
  cluster& of(std::string_view name) const;
  std::string url(std::string_view name) const;
  std::string kubeconfig(std::string_view name, std::string_view user, const std::string& as) const;
  std::string token_fields(std::string_view name, std::string_view user);
  asio::awaitable<void> run();

  const asio::any_io_executor executor_;
  const server_options options_;
  const server_environment environment_;
  const std::shared_ptr<server_memory> memory_;
  cluster_map& clusters_;
  std::shared_ptr<const storage> defaults_;  ///< of new clusters
  const std::unique_ptr<core::transport> transport_;
  watch_schedule schedule_;
  watch_counters counters_;
  devserver::reads reads_;
  write_planner planner_;
  admission_gate gate_;
  devserver::writes writes_;
  devserver::garbage_collector collector_;
  const devserver::reviews reviews_;
  test_control control_;
  api api_;
  http::server http_;  // last: its connections refer to all of the above
};

void server::implementation::add_cluster(std::string_view name) {
  if (!dns_label_errors(name).empty()) {
    throw std::invalid_argument("\"" + std::string(name) + "\" is no DNS label");
  }
  if (clusters_.contains(name)) {
    throw std::invalid_argument("the cluster \"" + std::string(name) + "\" is there already");
  }
  if (!defaults_) defaults_ = make_default_objects(environment_.clock, http_.address());
  auto made = std::make_shared<cluster>(std::string(name), options_.history, defaults_);
  call to{made, made->kinds.find("", "v1", "namespaces")};
  const auto namespaces = to.objects();
  for (const auto* ns : first_namespaces) {
    const auto plan = planner_.create(
        to, {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}}, {});
    made->objects.put(*namespaces, made->objects.next(plan->key, plan->object));
  }
  clusters_.emplace(made->name, std::move(made));
}

void server::implementation::remove_cluster(std::string_view name) {
  const auto at = clusters_.find(name);
  if (at == clusters_.end()) return;
  const auto gone = at->second;
  clusters_.erase(at);
  memory_->users.forget(name);
  gone->removed = true;
  gate_.forget(*gone);
  gone->objects.close();
}

cluster& server::implementation::of(std::string_view name) const {
  const auto at = clusters_.find(name);
  if (at == clusters_.end()) {
    throw std::invalid_argument("there is no cluster \"" + std::string(name) + "\"");
  }
  return *at->second;
}

std::string server::implementation::url(std::string_view name) const {
  const auto bound = http_.address();
  const auto address = bound.address();
  std::string host = address.is_unspecified() ? "127.0.0.1" : address.to_string();
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return (options_.tls ? "https://" : "http://") + host + ":" + std::to_string(bound.port()) +
         "/clusters/" + std::string(name);
}

std::string server::implementation::token_fields(std::string_view name, std::string_view user) {
  of(name);
  return "    token: " + memory_->users.token(name, user) + "\n";
}

std::string server::implementation::kubeconfig(std::string_view name, std::string_view user,
                                               const std::string& as) const {
  of(name);
  const auto context = quoted(name);
  const auto& trusted =
      options_.certificate.empty() ? memory_->ca.certificate_pem() : options_.certificate;
  const auto authority =
      options_.tls ? "\n    certificate-authority-data: " + base64_encode(trusted) : std::string();
  return "apiVersion: v1\nkind: Config\nclusters:\n- name: " + context +
         "\n  cluster:\n    server: " + url(name) + authority +
         "\nusers:\n- name: " + quoted(user) + "\n  user:\n" + as +
         "contexts:\n- name: " + context + "\n  context:\n    cluster: " + context +
         "\n    user: " + quoted(user) + "\ncurrent-context: " + context + "\n";
}

asio::awaitable<void> server::implementation::run() {
  core::task_group background(executor_);
  background.spawn(schedule_.run());
  for (const auto& [name, cluster] : clusters_) collector_.resume(cluster);
  std::exception_ptr failure;
  try {
    co_await http_.run();
  } catch (...) {
    failure = std::current_exception();
  }
  background.cancel();
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await collector_.close();
  co_await gate_.close();
  co_await background.join();
  if (failure) std::rethrow_exception(failure);
}

server::server(asio::any_io_executor executor, server_options options,
               server_environment environment, std::shared_ptr<server_memory> memory)
    : impl_(std::make_unique<implementation>(std::move(executor), std::move(options), environment,
                                             std::move(memory))) {}
server::~server() = default;

asio::ip::tcp::endpoint server::address() const {
  return impl_->http_.address();
}
const std::string& server::ca_certificate() const {
  return impl_->memory_->ca.certificate_pem();
}
const tls::issuer& server::ca() const {
  return impl_->memory_->ca;
}
void server::add_cluster(std::string_view name) {
  impl_->add_cluster(name);
}
void server::remove_cluster(std::string_view name) {
  impl_->remove_cluster(name);
}
std::vector<std::string> server::clusters() const {
  std::vector<std::string> names;
  for (const auto& [name, cluster] : impl_->clusters_) names.push_back(name);
  return names;
}
std::string server::url(std::string_view cluster) const {
  return impl_->url(cluster);
}
std::string server::kubeconfig(std::string_view cluster, std::string_view user) {
  return impl_->kubeconfig(cluster, user, impl_->token_fields(cluster, user));
}
std::string server::kubeconfig_with_certificate(std::string_view cluster, std::string_view user,
                                                std::vector<std::string> groups) {
  tls::certificate_request wanted;
  wanted.common_name = user;
  wanted.client_auth = true;
  wanted.organizations = std::move(groups);
  const auto pair = need(impl_->memory_->ca.issue(wanted), "client certificate");
  return impl_->kubeconfig(cluster, user,
                           "    client-certificate-data: " + base64_encode(pair.certificate) +
                               "\n    client-key-data: " + base64_encode(pair.key) + "\n");
}
void server::add_token(std::string_view cluster, std::string token, std::string_view user,
                       std::vector<std::string> groups) {
  impl_->of(cluster);
  impl_->memory_->users.add_token(cluster, std::move(token), user, std::move(groups));
}
devserver::faults& server::faults(std::string_view cluster) {
  return impl_->of(cluster).faults;
}
void server::compact(std::string_view cluster) {
  impl_->of(cluster).objects.compact();
}
std::shared_ptr<server_memory> server::memory() const {
  return impl_->memory_;
}
std::shared_ptr<const cluster_backup> server::back_up(std::string_view cluster) const {
  return std::make_shared<const cluster_backup>(impl_->of(cluster).back_up());
}
void server::restore(std::string_view cluster, const cluster_backup& from, bool reuse_versions) {
  impl_->of(cluster).restore(from, reuse_versions);
}
void server::drop_connections() {
  impl_->http_.drop_connections();
}
asio::awaitable<void> server::run() {
  return impl_->run();
}
void server::drain() {
  impl_->http_.drain();
}

}  // namespace rw::k8s::devserver
