#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detached.hpp>

#include "use.hpp"
#include <filesystem>
#include <rw/core/http/client.hpp>
#include <rw/reactors/events/serve.hpp>
#include <rw/reactors/intake/serve.hpp>
#include <rw/tls/issuer.hpp>
#include <rw/tls/transport.hpp>
#include <string>

/// As reactors/README.md shows it.
boost::asio::awaitable<void> watch(boost::asio::any_io_executor executor,
                                   rw::webhook::serve_options options);

namespace {

namespace asio = boost::asio;
namespace tls = rw::tls;

const char* const review =
    R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",)"
    R"("kind":{"group":"example.com","version":"v1","kind":"Widget"},)"
    R"("resource":{"group":"example.com","version":"v1","resource":"widgets"},)"
    R"("name":"b","namespace":"a","operation":"UPDATE","dryRun":false,)"
    R"("object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"b","namespace":"a"},"spec":{"n":1}},)"
    R"("oldObject":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"b","namespace":"a"},"spec":{"n":0}}}})";

/// A CA, and the files of a runtime's certificate, which serves and asks.
struct pki {
  pki() {
    folder = std::filesystem::temp_directory_path() / "rw-install-webhook";
    std::filesystem::create_directories(folder);
    const auto ca = tls::issuer::create({.common_name = "CA"});
    EXPECT(ca.has_value());
    const auto runtime = ca->issue({.common_name = "runtime-1",
                                    .dns_names = {"localhost"},
                                    .ips = {"127.0.0.1"},
                                    .server_auth = true,
                                    .client_auth = true});
    EXPECT(runtime.has_value());
    EXPECT(tls::write_files(folder, "ca", ca->own()).has_value());
    EXPECT(tls::write_files(folder, "runtime", *runtime).has_value());
  }
  ~pki() { std::filesystem::remove_all(folder); }
  pki(const pki&) = delete;
  pki& operator=(const pki&) = delete;

  tls::material_files files() const {
    return {(folder / "runtime.crt").string(), (folder / "runtime.key").string(),
            (folder / "ca.crt").string()};
  }

  std::filesystem::path folder;
};

/// Sends a review, as the API server does.
asio::awaitable<unsigned> send(asio::ip::tcp::endpoint to, tls::material_files files) {
  const auto own = tls::credentials::load(files);
  EXPECT(own.has_value());
  const auto transport = tls::make_client_transport(*own, {.server_name = "localhost"});
  EXPECT(transport.has_value());
  rw::core::logger log(rw::core::log_level::error);
  rw::core::metrics metrics;
  rw::http::client client(co_await asio::this_coro::executor,
                          {.name = "api-server", .host = "127.0.0.1", .port = to.port()},
                          {.transport = **transport, .log = log, .metrics = metrics});
  rw::http::request request;
  request.method = "POST";
  request.target = "/validate/host";
  request.headers.add("content-type", "application/json");
  request.body = review;
  rw::http::response response;
  rw::http::client_slot slot;
  auto error = co_await client.acquire(slot);
  if (!error) error = co_await slot.exchange(request, response);
  EXPECT(!error);
  co_await client.close();
  co_return response.status;
}

asio::awaitable<void> send_one(asio::ip::tcp::endpoint to, tls::material_files files) {
  const auto status = co_await send(to, std::move(files));
  EXPECT(status == 200);
}

/// A review becomes an event at a listener, which stands for KCP's gateway; then both end in order.
void delivers_events() {
  const pki made;
  asio::io_context context;
  asio::cancellation_signal end_of_webhook;
  asio::cancellation_signal end_of_listener;
  std::string heard;
  std::size_t undelivered = 1;
  rw::listener::listener_options kcp;
  kcp.address = {asio::ip::address_v4::loopback(), 0};
  kcp.component = "host";
  const auto own = tls::credentials::load(made.files());
  EXPECT(own.has_value());
  kcp.tls = *own;
  kcp.resyncs = true;
  const auto on_event = [&](rw::listener::received_event got) -> asio::awaitable<void> {
    if (got.resync) co_return;
    heard = got.runtime_id + ": " + got.event.watched.name;
    end_of_webhook.emit(asio::cancellation_type::terminal);
  };
  const auto begin_webhook = [&](asio::ip::tcp::endpoint gateway) {
    rw::webhook::serve_options options;
    options.address = {asio::ip::address_v4::loopback(), 0};
    options.files = made.files();
    options.kcp = {"localhost", gateway.port()};
    options.heartbeat_interval = {};
    options.shutdown_delay = {};
    asio::co_spawn(context,
                   rw::webhook::serve(context.get_executor(), options,
                                      {.on_listening =
                                           [&](asio::ip::tcp::endpoint at) {
                                             asio::co_spawn(context, send_one(at, made.files()),
                                                            asio::detached);
                                           }}),
                   asio::bind_cancellation_slot(
                       end_of_webhook.slot(), [&](std::exception_ptr failure, std::size_t left) {
                         EXPECT(failure == nullptr);
                         undelivered = left;
                         end_of_listener.emit(asio::cancellation_type::terminal);
                       }));
  };
  asio::co_spawn(
      context,
      rw::listener::serve(context.get_executor(), kcp, on_event, {.on_listening = begin_webhook}),
      asio::bind_cancellation_slot(end_of_listener.slot(),
                                   [](std::exception_ptr failure) { EXPECT(failure == nullptr); }));
  context.run();
  EXPECT(heard == "runtime-1: b");
  EXPECT(undelivered == 0);
}

}  // namespace

void use_webhook() {
  delivers_events();
  asio::io_context context;
  std::string thrown;
  asio::co_spawn(context,
                 watch(context.get_executor(), {.files = {"none.crt", "none.key", "none.ca"}}),
                 [&thrown](std::exception_ptr failure) {
                   try {
                     if (failure) std::rethrow_exception(failure);
                   } catch (const std::invalid_argument& invalid) {
                     thrown = invalid.what();
                   }
                 });
  context.run();
  EXPECT(thrown.starts_with("files: ") && thrown.find("none.crt") != thrown.npos);
}
