#include "rw/reactors/cli/replay_app.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/tls/files.hpp"
#include "rw/tls/transport.hpp"

#include <unistd.h>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::size_t most_answered = 1u << 20;

std::unique_ptr<core::transport> transport_of(const replay_settings& settings) {
  auto trusted = tls::material::none();
  if (!settings.ca_cert.empty()) {
    const auto text = need(tls::read_file(settings.ca_cert), "--ca-cert");
    trusted = need(tls::material::from_text({.ca = text}, {.ca = settings.ca_cert}), "--ca-cert");
  }
  const auto& name = settings.server_name.empty() ? settings.address.host : settings.server_name;
  return need(
      tls::make_client_transport(std::make_shared<tls::credentials>(std::move(trusted)),
                                 {.server_name = name, .trust_system = settings.ca_cert.empty()}),
      "--ca-cert");
}

std::string text_at(const json::value& of, std::initializer_list<std::string_view> path) {
  return core::printable(k8s::find_string(of, path));
}

}  // namespace

std::string verdict_of(const std::string& review, unsigned status, const std::string& response) {
  const auto sent = k8s::read_json(review);
  const auto uid = sent ? text_at(*sent, {"request", "uid"}) : std::string();
  const auto parsed = k8s::read_json(response);
  if (status != 200) return "status " + std::to_string(status);
  if (!parsed || k8s::find_string(*parsed, {"kind"}) != "AdmissionReview") {
    return "the response is no AdmissionReview";
  }
  const auto& read = *parsed;
  if (text_at(read, {"response", "uid"}) != uid) return "the response has another uid";
  const auto* const allowed = k8s::find(read, {"response", "allowed"});
  const auto reason = text_at(read, {"response", "status", "message"});
  if (allowed == nullptr || *allowed != true) return "denied: " + reason;
  return reason.empty() ? "allowed" : "allowed: " + reason;
}

replay_app::replay_app(services& with, replay_settings settings)
    : app(with),
      settings_(std::move(settings)),
      transport_(transport_of(settings_)),
      client_(with.executor,
              {.name = "webhook",
               .host = settings_.address.host,
               .port = settings_.address.port,
               .limits = {.body_bytes = most_answered}},
              {*transport_, with.watchdog, with.log, with.metrics}),
      output_(with.executor, STDOUT_FILENO) {
  for (const auto& file : settings_.files) need(tls::read_file(file), file);
}

asio::awaitable<replay_app::outcome> replay_app::post(const std::string* review) {
  http::request request;
  request.target = settings_.path;
  request.headers.add("content-type", "application/json");
  request.headers.add("accept", "application/json");
  request.body = *review;
  http::response response;
  http::client_slot slot;
  auto error = co_await client_.acquire(slot, settings_.timeout);
  const bool connected = !error;
  const http::exchange_options options{.limit = settings_.timeout};
  if (!error) error = co_await slot.exchange(request, response, options);
  if (error) {
    const auto cause = connected ? std::string() : ": " + client_.connect_failure();
    throw std::runtime_error("no response from " + settings_.address.host + ":" +
                             std::to_string(settings_.address.port) + ": " + error.message() +
                             cause);
  }
  auto text = verdict_of(*review, response.status, response.body);
  const bool allowed = text.starts_with("allowed");
  co_return outcome{allowed, std::move(text)};
}

asio::awaitable<int> replay_app::post_all() {
  bool all_allowed = true;
  for (const auto& file : settings_.files) {
    const auto review = need(tls::read_file(file), file);
    const auto begun = services_.clock.now();
    const auto seen = co_await post(&review);
    const auto took = (services_.clock.now() - begun) / std::chrono::microseconds(1);
    all_allowed = all_allowed && seen.allowed;
    auto line = file + ": " + seen.text + " (" + std::to_string(took) + " us)\n";
    const auto failed = co_await output_.write(std::move(line));
    if (failed) co_return 1;
  }
  co_return all_allowed ? 0 : 3;
}

asio::awaitable<int> replay_app::run() {
  auto code = co_await run_to_end(post_all(), client_.close());
  co_return code;
}

}  // namespace rw::cli
