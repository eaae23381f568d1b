#include "backend.hpp"

#include "rw/core/config.hpp"
#include "rw/core/task_group.hpp"
#include "rw/k8s/devserver/server.hpp"
#include "rw/k8s/devserver/server_memory.hpp"
#include "rw/tls/transport.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <stdexcept>

namespace rw::conformance {
namespace {

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

std::unique_ptr<backend>& the_backend() {
  static std::unique_ptr<backend> one;
  return one;
}

std::string random_text() {
  std::random_device source;
  std::string made;
  for (int i = 0; i < 6; ++i) made += "bcdfghjklmnpqrstvwxz2456789"[source() % 27];
  return made;
}

/// Authority and path of "https://host:port/path".
struct location {
  core::host_port at;
  std::string path;
};

location parse_url(std::string url) {
  const auto begin = url.find("://") + 3;
  const auto slash = url.find('/', begin);
  const auto authority = url.substr(begin, slash == std::string::npos ? slash : slash - begin);
  const auto at = core::parse_host_port(authority);
  if (!at) throw std::invalid_argument("no host and port in " + url);
  auto path = slash == std::string::npos ? std::string() : url.substr(slash);
  while (path.ends_with('/')) path.pop_back();
  return {*at, path};
}

boost::asio::awaitable<boost::system::error_code> exchange(http::client& over,
                                                           const http::request& what,
                                                           http::response& into) {
  http::client_slot slot;
  auto error = co_await over.acquire(slot);
  if (!error) error = co_await slot.exchange(what, into);
  co_return error;
}

constexpr auto cluster = "conformance";

}  // namespace

struct backend::embedded_server {
  explicit embedded_server(host& here) : tasks(here.executor()) {
    k8s::devserver::server_options options;
    options.bookmark_interval = std::chrono::seconds(1);
    options.authorization = true;
    server = std::make_unique<k8s::devserver::server>(
        here.executor(), options,
        k8s::devserver::server_environment{here.clock, here.watchdog, here.log, here.metrics});
    server->add_cluster(cluster);
    tasks.spawn(server->run());
  }

  std::unique_ptr<k8s::devserver::server> server;
  core::task_group tasks;
};

backend& backend::get() {
  auto& one = the_backend();
  if (!one) one.reset(new backend);
  return *one;
}

void backend::stop() {
  the_backend().reset();
}

bool backend::embedded() {
  return environment("RW_CONFORMANCE_KUBECONFIG") == nullptr;
}

backend::backend() : run_(random_text()) {
  if (const char* file = environment("RW_CONFORMANCE_KUBECONFIG")) {
    kubeconfig_file_ = file;
  } else {
    here.on_thread([this] { embedded_ = std::make_unique<embedded_server>(here); });
  }
  admin_ = config("admin");
  api_ = client("admin");
  start_transport();
}

backend::~backend() {
  here.call(api_->close());
  here.call(http_->close());
  here.on_thread([this] {
    api_.reset();
    http_.reset();
  });
  if (embedded_) {
    here.on_thread([this] { embedded_->tasks.cancel(); });
    here.call(embedded_->tasks.join());
    here.on_thread([this] { embedded_.reset(); });
  }
  here.stop();
}

void backend::start_transport() {
  const auto where = parse_url(admin_.server);
  prefix_ = where.path;
  auto trust = tls::credentials::from_text({.ca = admin_.ca}).value();
  transport_ = tls::make_client_transport(std::move(trust), {.server_name = where.at.host}).value();
  http::client_options options;
  options.name = "conformance";
  options.host = where.at.host;
  options.port = where.at.port;
  options.limits.body_bytes = 16u << 20;
  here.on_thread([&] {
    http_ = std::make_unique<http::client>(
        here.executor(), options,
        http::client_environment{*transport_, here.watchdog, here.log, here.metrics});
  });
}

k8s::config backend::config(const std::string& user) const {
  if (!embedded_) return k8s::load_kubeconfig({kubeconfig_file_}, user).value();
  auto& server = *embedded_->server;
  const auto text = user == "certificate" ? server.kubeconfig_with_certificate(cluster, user)
                                          : server.kubeconfig(cluster, user);
  return k8s::parse_kubeconfig(text, "the embedded server's kubeconfig", ".").value();
}

std::unique_ptr<k8s::client> backend::client(const std::string& user, k8s::client_options options) {
  if (options.user_agent.empty()) options.user_agent = "conformance";
  if (options.field_manager.empty()) options.field_manager = "conformance";
  options.retries = 0;  // an answer is what the test is about
  auto how = config(user);
  std::unique_ptr<k8s::client> made;
  here.on_thread([&] {
    made = std::make_unique<k8s::client>(
        here.executor(), std::move(how), std::move(options),
        k8s::client_environment{here.clock, here.watchdog, here.log, here.metrics});
  });
  return made;
}

backend::answer backend::http(const std::string& method, const std::string& target,
                              const std::string& body,
                              std::vector<std::pair<std::string, std::string>> headers) {
  http::request what;
  what.method = method;
  what.target = prefix_ + target;
  what.body = body;
  bool authorized = false;
  bool typed = false;
  for (const auto& [name, value] : headers) {
    authorized |= name == "authorization";
    typed |= name == "content-type";
    if (!value.empty()) what.headers.add(name, value);
  }
  if (!authorized) what.headers.add("authorization", "Bearer " + admin_.token);
  if (!typed && !body.empty()) what.headers.add("content-type", "application/json");
  return send(what);
}

backend::answer backend::send(const http::request& what) {
  http::response got;
  const auto error = here.call(exchange(*http_, what, got));
  if (error) throw std::runtime_error(what.method + " " + what.target + ": " + error.message());
  return {got.status, std::move(got.headers), std::move(got.body)};
}

backend::answer backend::http_on(const std::string& name, http::request what) {
  std::string token;
  here.on_thread([&] {
    auto& server = *embedded_->server;
    if (std::ranges::count(server.clusters(), name) == 0) {
      server.add_cluster(name);
      server.memory()->clusters.at(name)->controllers = false;
    }
    const auto text = server.kubeconfig(name, "admin");
    token = k8s::parse_kubeconfig(text, "the embedded server's kubeconfig", ".").value().token;
  });
  what.target = "/clusters/" + name + what.target;
  if (what.headers.get("authorization").empty()) {
    what.headers.add("authorization", "Bearer " + token);
  }
  return send(what);
}

void backend::compact() {
  if (embedded_) {
    here.on_thread([this] { embedded_->server->compact(cluster); });
    return;
  }
  const char* etcd = environment("RW_CONFORMANCE_ETCD");
  BOOST_REQUIRE_MESSAGE(etcd != nullptr, "RW_CONFORMANCE_ETCD says where etcd is");
  const k8s::resource_type any{{"", "v1", "Namespace"}, "namespaces", false};
  const auto now = here.call(api_->list(any, {}, {.limit = 1})).value();
  const auto revision = std::string(now.at("metadata").at("resourceVersion").as_string());
  const auto where = parse_url(etcd);
  const auto plain = core::make_plain_transport();
  http::client_options options;
  options.name = "etcd";
  options.host = where.at.host;
  options.port = where.at.port;
  std::unique_ptr<http::client> over;
  here.on_thread([&] {
    over = std::make_unique<http::client>(
        here.executor(), options,
        http::client_environment{*plain, here.watchdog, here.log, here.metrics});
  });
  // etcd's gRPC gateway, KV.Compact (etcd API reference).
  http::request what;
  what.target = "/v3/kv/compaction";
  what.headers.add("content-type", "application/json");
  what.body = boost::json::serialize(boost::json::value{{"revision", revision}});
  http::response got;
  const auto error = here.call(exchange(*over, what, got));
  here.call(over->close());
  here.on_thread([&] { over.reset(); });
  BOOST_REQUIRE_MESSAGE(!error && got.status == 200, "etcd compacts: " << got.status << got.body);
}

std::string backend::unique(std::string_view stem) {
  return std::string(stem) + "-" + run_ + "-" + std::to_string(++counter_);
}

std::string backend::description() {
  const auto answer = http("GET", "/version");
  const auto version = boost::json::parse(answer.body);
  return (embedded() ? "the embedded API server, " : "kube-apiserver ") +
         std::string(version.at("gitVersion").as_string());
}

}  // namespace rw::conformance
