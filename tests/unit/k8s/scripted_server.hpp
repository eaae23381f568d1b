#pragma once

#include "rw/core/http/server.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/tls/certificate.hpp"
#include "rw/tls/transport.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/host.hpp"
#include "tests/unit/k8s/watch_to_end.hpp"
#include "tests/unit/tls/pki.hpp"
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::k8s::test {

/// A request as a server saw it.
struct seen_request {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;
  std::string body;
  std::string client;  ///< the common name of its certificate

  std::string line() const { return method + " " + target; }
  std::string header(const std::string& name) const {
    const auto at = headers.find(name);
    return at == headers.end() ? "" : at->second;
  }
};

inline void reply(http::response& into, unsigned status, std::string body) {
  into.status = status;
  into.headers.add("content-type", "application/json");
  into.body = std::move(body);
}

/// An answer of the kind Status.
inline std::string status_text(unsigned code, const std::string& reason, const std::string& message,
                               const std::string& more = {}) {
  return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":")" +
         message + R"(","reason":")" + reason + R"(","code":)" + std::to_string(code) + more + "}";
}

/// Answers as the test says, and remembers what it was asked.
class script final : public http::handler {
 public:
  using answer = std::function<void(const seen_request&, http::response&)>;

  explicit script(boost::asio::any_io_executor executor) : never_(std::move(executor)) {}

  std::size_t body_limit(const http::request&) const override { return 1u << 20; }

  boost::asio::awaitable<void> handle(http::request& from, http::response& into) override {
    const auto request = note(from);
    answer how;
    {
      const std::lock_guard lock(guard_);
      seen_.push_back(request);
      how = answer_;
    }
    if (!how) return wait();
    how(request, into);
    return {};
  }

  /// Without an answer the server keeps silent.
  void answers(answer how) {
    const std::lock_guard lock(guard_);
    answer_ = std::move(how);
  }
  void answers(unsigned status, std::string body) {
    answers([status, body = std::move(body)](const seen_request&, http::response& into) {
      reply(into, status, body);
    });
  }
  /// First these, one after the other, then the last one for ever.
  void answers_in_turn(std::vector<answer> hows) {
    const auto next = std::make_shared<std::size_t>(0);
    answers([hows = std::move(hows), next](const seen_request& from, http::response& into) {
      hows[*next](from, into);
      if (*next + 1 < hows.size()) ++*next;
    });
  }

  std::vector<seen_request> seen() const {
    const std::lock_guard lock(guard_);
    return seen_;
  }
  std::size_t count() const { return seen().size(); }
  seen_request last() const {
    const auto all = seen();
    BOOST_REQUIRE(!all.empty());
    return all.back();
  }

 private:
  static seen_request note(const http::request& from) {
    seen_request out{from.method, from.target, {}, from.body, {}};
    for (std::size_t i = 0; i < from.headers.size(); ++i) {
      const auto field = from.headers[i];
      std::string name(field.name);
      for (auto& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      auto& value = out.headers[name];
      value += (value.empty() ? "" : ", ") + std::string(field.value);
    }
    if (!from.peer.certificate.empty()) {
      out.client = tls::certificate::from_der(from.peer.certificate)->common_name();
    }
    return out;
  }

  boost::asio::awaitable<void> wait() { co_await never_.wait(); }

  core::wake never_;  ///< one request at a time may be kept waiting
  mutable std::mutex guard_;
  answer answer_;
  std::vector<seen_request> seen_;
};

enum class protocol { h2, http1 };

inline std::unique_ptr<core::transport> server_transport(protocol which, bool mutual = false) {
  const auto& pki = tls::test::the_pki();
  tls::server_options options;
  options.alpn = which == protocol::h2 ? std::vector<std::string>{"h2", "http/1.1"}
                                       : std::vector<std::string>{"http/1.1"};
  options.require_client_certificate = mutual;
  return tls::test::good(tls::make_server_transport(
      tls::test::holding(pki.server, pki.ca.certificate_pem()), options));
}

/// A scripted API server, and a client of it, each on one host.
class api_fixture {
 public:
  explicit api_fixture(protocol which = protocol::h2, bool mutual = false)
      : transport_(server_transport(which, mutual)), server(here, *transport_, script) {
    script.answers(200, R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}})");
  }
  ~api_fixture() {
    close();
    here.stop();
  }

  k8s::config config() const {
    k8s::config out;
    out.server = "https://127.0.0.1:" + std::to_string(server.address.port());
    out.ca = tls::test::the_pki().ca.certificate_pem();
    out.token = "secret-token";
    out.source = "context 'test'";
    return out;
  }

  static client_options quick() {
    client_options out;
    out.name = "test";
    out.user_agent = out.field_manager = "runtime-watcher";
    out.retry_base = std::chrono::milliseconds(1);
    out.retry_limit = std::chrono::milliseconds(2500);
    return out;
  }

  client& use(k8s::config how, client_options options = quick()) {
    close();
    std::exception_ptr refused;
    here.on_thread([&] {
      try {
        api_ = std::make_unique<client>(
            here.executor(), std::move(how), std::move(options),
            client_environment{here.clock,
                               brings_watchdog ? core::optional_watchdog(here.watchdog)
                                               : core::optional_watchdog(),
                               here.log, here.metrics});
      } catch (...) {
        refused = std::current_exception();
      }
    });
    if (refused) std::rethrow_exception(refused);
    return *api_;
  }

  client& api() { return api_ ? *api_ : use(config()); }

  void close() {
    if (!api_) return;
    here.call(api_->close());
    here.on_thread([&] { api_.reset(); });
  }

  /// Awaits a call of the client on its thread.
  template <class T>
  T call(boost::asio::awaitable<T> what) {
    return here.call(std::move(what));
  }

  double metric(const std::string& series) { return here.metric(series); }

  http::test::host here;
  test::script script{here.executor()};
  bool brings_watchdog = true;  ///< set before a client is made

 private:
  std::unique_ptr<core::transport> transport_;
  std::unique_ptr<client> api_;

 public:
  http::test::running_server server;
};

inline const resource_type config_maps{{"", "v1", "ConfigMap"}, "configmaps", true};
inline const resource_type deployments{{"apps", "v1", "Deployment"}, "deployments", true};
inline const resource_type namespaces{{"", "v1", "Namespace"}, "namespaces", false};

}  // namespace rw::k8s::test
