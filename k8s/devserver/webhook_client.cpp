#include "rw/k8s/devserver/webhook_client.hpp"

#include "rw/k8s/objects/url.hpp"
#include "rw/tls/transport.hpp"
#include "rw/tls/xfcc.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rw::k8s::devserver {
namespace {

namespace asio = boost::asio;
using http::client_error;

constexpr std::size_t most_connections = 16;  // where the webhook speaks HTTP/1.1
constexpr std::size_t most_streams = 250;     // at once where it speaks HTTP/2
constexpr std::size_t most_answered = 1u << 20;
constexpr std::string_view scheme = "https://";

asio::awaitable<void> close_line(std::shared_ptr<webhook_client> line) {
  co_await line->close();
}

std::string in_lower_case(std::string text) {
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] += 'a' - 'A';
  return text;
}

/// Worded as by Go (crypto/x509, verify.go), which kube-apiserver is written in.
std::string text_of_handshake(const std::string& cause, const std::string& server_name) {
  static constexpr std::string_view refused = "tls: failed to verify certificate: x509: ";
  const auto says = [&](std::string_view part) { return cause.find(part) != std::string::npos; };
  if (says("has expired") || says("is not yet valid")) {
    return std::string(refused) + "certificate has expired or is not yet valid: " + cause;
  }
  if (says("hostname mismatch")) {
    return std::string(refused) + "certificate is valid for other names, not " + server_name;
  }
  if (says("certificate refused")) {
    return std::string(refused) + "certificate signed by unknown authority: " + cause;
  }
  return "tls: " + cause;
}

/// Parses "https://host:port" without a path.
bool read_authority(const std::string& url, webhook_address& into, std::string& reason) {
  const auto parsed = parse_server_url(url);
  if (!parsed || !parsed->tls) {
    reason = "\"" + url + "\" " + (parsed ? "is not https" : parsed.error().message);
    return false;
  }
  into.host = parsed->host;
  into.port = parsed->port;
  return true;
}

/// Cleans a decoded path as Go's path.Join does, and encodes it as Go's net/url does.
std::string cleaned(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const auto part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
  }
  std::string out;
  for (const auto part : parts) append_percent_encoded(out += '/', part, "$&+,:;=@");
  return out.empty() ? "/" : out;
}

/// Returns where the authority of an https URL ends.
std::size_t end_of_authority(std::string_view url) {
  return std::min(url.find('/', scheme.size()), url.size());
}

/// Returns the path of a URL, cleaned; nothing: it can't be decoded.
std::optional<std::string> path_in(std::string_view url, std::size_t slash, std::string& reason) {
  const auto path = tls::percent_decode(url.substr(slash, url.find('?', slash) - slash));
  if (!path) reason = "parse \"" + std::string(url) + "\": invalid URL escape";
  return path ? std::optional(cleaned(*path)) : std::nullopt;
}

}  // namespace

std::optional<webhook_address> webhook_address::of(const webhook& webhook,
                                                   const webhooks::service_resolver& resolver,
                                                   std::string& reason) {
  webhook_address made;
  const auto query = "?timeout=" + std::to_string(webhook.timeout.count()) + "s";
  if (!webhook.url.empty()) {
    const auto slash = end_of_authority(webhook.url);
    if (!read_authority(webhook.url.substr(0, slash), made, reason)) return std::nullopt;
    const auto path = path_in(webhook.url, slash, reason);
    if (!path) return std::nullopt;
    made.server_name = made.host;
    made.target = *path + query;
    made.url = webhook.url.substr(0, slash) + made.target;
    return made;
  }
  made.server_name = webhook.service.name + "." + webhook.service.ns + ".svc";
  made.target = cleaned(webhook.service_path) + query;
  made.url = std::string(scheme) + made.server_name + ":" + std::to_string(webhook.service_port) +
             made.target;
  const auto found = resolver ? resolver(webhook.service, webhook.service_port) : service_route();
  if (!found.endpoint) {
    const auto service = "service \"" + webhook.service.name + "\"";
    reason = "Post \"" + made.url + "\": " +
             (found.exists ? "no endpoints available for " + service : service + " not found");
    return std::nullopt;
  }
  made.host = found.endpoint->address().to_string();
  made.port = found.endpoint->port();
  return made;
}

std::optional<webhook_address> webhook_address::redirected(std::string_view location,
                                                           std::string& reason) const {
  auto made = *this;
  auto whole = std::string(location.substr(0, location.find('#')));
  const auto own = url.substr(0, end_of_authority(url));
  if (whole.starts_with("//")) whole.insert(0, "https:");
  if (whole.find("://") >= whole.find_first_of("/?")) {  // it has no scheme
    const auto folder = target.substr(0, target.rfind('/', target.find('?')) + 1);
    whole.insert(0, whole.starts_with('/') ? own : own + folder);
  }
  const auto slash = end_of_authority(whole);
  if (whole.compare(0, slash, own) != 0) {
    if (!read_authority(whole.substr(0, slash), made, reason)) return std::nullopt;
    if (server_name == host) made.server_name = made.host;
  }
  const auto path = path_in(whole, slash, reason);
  if (!path) return std::nullopt;
  const auto query = std::min(whole.find('?', slash), whole.size());
  const bool is_folder = query > slash + 1 && whole[query - 1] == '/';
  made.target = *path + (is_folder ? "/" : "") + whole.substr(query);
  made.url = whole.substr(0, slash) + made.target;
  return made;
}

bool webhook_address::shares_server(const webhook_address& other) const noexcept {
  return host == other.host && port == other.port && server_name == other.server_name;
}

/// Counts a call under way.
class webhook_client::in_flight_guard {
 public:
  explicit in_flight_guard(webhook_client& on) : client_(on) { ++client_.calls_; }
  ~in_flight_guard() {
    if (--client_.calls_ == 0 && client_.draining_) {
      client_.tasks_.spawn(close_line(client_.shared_from_this()));
    }
  }
  in_flight_guard(const in_flight_guard&) = delete;
  in_flight_guard& operator=(const in_flight_guard&) = delete;

 private:
  webhook_client& client_;
};

std::shared_ptr<webhook_client> webhook_client::open(core::task_group& tasks, const webhook& to,
                                                     webhook_address at, webhooks::environment with,
                                                     std::string& reason) {
  auto trusted = tls::material::none();
  if (!to.authorities.empty()) {
    auto read = tls::material::from_text({.ca = to.authorities}, {.ca = "caBundle"});
    if (!read) {
      reason = "unable to load root certificates: " + read.error().message();
      return nullptr;
    }
    trusted = std::move(*read);
  }
  auto made = tls::make_client_transport(std::make_shared<tls::credentials>(std::move(trusted)),
                                         {.server_name = at.server_name,
                                          .least = tls::version::tls_1_2,
                                          .trust_system = to.authorities.empty()});
  if (!made) {
    reason = made.error().message();
    return nullptr;
  }
  return std::make_shared<webhook_client>(tasks, std::move(*made), std::move(at), with);
}

webhook_client::webhook_client(core::task_group& tasks, std::unique_ptr<core::transport> over,
                               webhook_address at, webhooks::environment with)
    : tasks_(tasks),
      address_(std::move(at)),
      environment_(with),
      transport_(std::move(over)),
      client_(tasks.get_executor(),
              {.name = "webhook",
               .host = address_.host,
               .port = address_.port,
               .limits = {.connections = most_connections,
                          .streams = most_streams,
                          .body_bytes = most_answered}},
              {*transport_, environment_.watchdog, environment_.log, environment_.metrics}) {}

std::string webhook_client::text_of(boost::system::error_code error) const {
  if (error == client_error::timed_out) return "context deadline exceeded";
  if (error == client_error::resolve) return "dial tcp: lookup " + address_.host + ": no such host";
  const auto cause = in_lower_case(client_.connect_failure());
  if (error == client_error::connect) {
    return "dial tcp " + address_.host + ":" + std::to_string(address_.port) +
           ": connect: " + cause;
  }
  if (error == client_error::handshake) return text_of_handshake(cause, address_.server_name);
  return error.message();
}

asio::awaitable<webhook_decision> webhook_client::ask(const webhook_call* call) {
  const auto self = shared_from_this();
  const in_flight_guard here(*this);
  const auto left = [&] {
    return std::max(std::chrono::milliseconds(1), std::chrono::ceil<std::chrono::milliseconds>(
                                                      call->end - environment_.clock.now()));
  };
  http::request request;
  request.target = call->at.target;
  request.headers.add("content-type", "application/json");
  request.headers.add("accept", "application/json");
  request.headers.add("user-agent", "kube-apiserver-admission");
  request.body = call->body;
  http::response answer;
  http::client_slot slot;
  auto error = co_await client_.acquire(slot, left());
  if (!error) {
    const http::exchange_options options{.limit = left()};
    error = co_await slot.exchange(request, answer, options);
  }
  if (error) {
    co_return webhook_decision{.failed = "Post \"" + call->at.url + "\": " + text_of(error),
                               .unseen = error == client_error::not_processed ||
                                         error == client_error::reused_connection_closed};
  }
  const auto location = answer.headers.get("location");
  if ((answer.status == 307 || answer.status == 308) && !location.empty()) {
    co_return webhook_decision{.location = std::string(location)};
  }
  co_return judge_answer(call->to, call->uid, answer.status, answer.body);
}

void webhook_client::drain() {
  if (std::exchange(draining_, true) || calls_ > 0) return;
  tasks_.spawn(close_line(shared_from_this()));
}

asio::awaitable<void> webhook_client::close() {
  const auto self = shared_from_this();
  if (std::exchange(closed_, true)) co_return;
  co_await client_.close();
}

}  // namespace rw::k8s::devserver
