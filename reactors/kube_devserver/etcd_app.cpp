#include "rw/reactors/kube_devserver/etcd_app.hpp"

#include <boost/asio/ip/address.hpp>

#include <string_view>

namespace rw::kube_devserver {

using namespace cli;
namespace {

namespace asio = boost::asio;

http::server_options options_of(const etcd_settings& settings) {
  std::string_view url = settings.listen_url;
  constexpr std::string_view scheme = "http://";
  if (url.starts_with(scheme)) url.remove_prefix(scheme.size());
  auto address = core::parse_host_port(url);
  if (!address) throw setting_error("--listen-client-urls must be http://IP:PORT");
  if (address->host == "localhost") address->host = "127.0.0.1";
  http::server_options result;
  result.name = "etcd";
  result.address = listening_address(*address, "--listen-client-urls");
  return result;
}

}  // namespace

etcd_app::etcd_app(services& with, const etcd_settings& settings)
    : app(with),
      transport_(core::make_plain_transport()),
      server_(with.executor, options_of(settings), *this,
              {*transport_, with.watchdog, with.log, with.metrics}) {}

asio::awaitable<void> etcd_app::handle(http::request& from, http::response& into) {
  if (from.target == "/health") {
    into.status = 200;
    into.headers.add("content-type", "application/json");
    into.body = R"({"health":"true","reason":""})";
  } else {
    into.text(501, "this etcd holds nothing: kube-devserver keeps its objects itself\n");
  }
  return {};
}

asio::awaitable<int> etcd_app::run() {
  core::task_group serving(services_.executor, fail_on_exception());
  serving.spawn(server_.run());
  log_listening(services_.log, "etcd", server_.address());
  co_await stop_.wait();
  serving.cancel();
  co_await serving.join();
  rethrow_failure();
  co_return 0;
}

}  // namespace rw::kube_devserver
