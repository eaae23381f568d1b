#include "rw/k8s/client/session.hpp"

#include "rw/core/network.hpp"
#include "rw/core/text.hpp"
#include "rw/k8s/client/retry.hpp"
#include "rw/k8s/objects/status.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <functional>
#include <utility>

namespace rw::k8s {

void check_names(const client_options& options) {
  for (const auto& [value, name] : {std::pair(&options.user_agent, "user_agent"),
                                    std::pair(&options.field_manager, "field_manager")}) {
    if (value->empty()) {
      throw std::invalid_argument("client_options of \"" + options.name + "\": " + name +
                                  " is empty, it must name this program");
    }
  }
}

namespace {

namespace asio = boost::asio;
using http::client_error;
using std::chrono::milliseconds;

constexpr std::size_t streams = 250;          // what a kube-apiserver grants on a connection
constexpr std::size_t warnings_kept = 128;    // texts
constexpr milliseconds shortest_attempt(10);  // what is left of a deadline may be worth

/// Requests and what stands in their header fields must be one line each.
void check_fields(const config& configuration, const client_options& options) {
  check_names(options);
  bool good = core::is_field_value(configuration.impersonate_user) &&
              core::is_field_value(configuration.impersonate_uid);
  for (const auto& group : configuration.impersonate_groups)
    good = good && core::is_field_value(group);
  for (const auto& [name, value] : configuration.impersonate_extra)
    good = good && core::is_field_value(value);
  if (!good)
    throw_unusable(configuration, "as, as-uid, as-groups or as-user-extra has control characters");
  if (!core::is_field_value(options.user_agent))
    throw_unusable(configuration, "user agent: has control characters");
}

/// Whom the server is to take the requests for (Kubernetes, "User impersonation"). Names of extra
/// fields may have characters that a field name may not; in HTTP/2 those are lower case.
void add_impersonation(const config& configuration, http::fields& into) {
  if (configuration.impersonate_user.empty()) return;
  into.add("impersonate-user", configuration.impersonate_user);
  if (!configuration.impersonate_uid.empty())
    into.add("impersonate-uid", configuration.impersonate_uid);
  for (const auto& group : configuration.impersonate_groups) into.add("impersonate-group", group);
  for (const auto& [name, value] : configuration.impersonate_extra) {
    std::string field = "impersonate-extra-";
    append_percent_encoded(field, name);
    into.add(core::lower(field), value);
  }
}

/// Returns the text of a Warning field, `299 - "text"`, without its quotes (RFC 7234, section 5.5).
std::string warning_text(std::string_view field) {
  const auto open = field.find('"');
  std::string out;
  if (open == field.npos) return out;
  for (auto i = open + 1; i < field.size() && field[i] != '"'; ++i) {
    if (field[i] == '\\' && i + 1 < field.size()) ++i;
    out += field[i];
  }
  return core::printable(out);
}

}  // namespace

errc errc_of(boost::system::error_code error) noexcept {
  if (error.category() != http::client_category()) return errc::unreachable;
  switch (static_cast<client_error>(error.value())) {
    case client_error::timed_out:
      return errc::timed_out;
    case client_error::protocol:
      return errc::bad_response;
    case client_error::response_too_large:
      return errc::too_large;
    case client_error::shut_down:
      return errc::shut_down;
    case client_error::not_permitted:
      return errc::fenced;
    case client_error::address_refused:
      return errc::address_refused;
    default:
      return errc::unreachable;
  }
}

/// One try of a call, and what came of it.
struct session::attempt {
  core::time_point until;  ///< the call's deadline
  http::response response = {};
  std::optional<failure> failed = {};
  attempt_facts facts = {};
  std::uint64_t generation = 0;  ///< of the credentials it went out with
};

/// A call under way.
class session::presence {
 public:
  explicit presence(session& of) : session_(of) { ++session_.present_; }
  ~presence() {
    if (--session_.present_ == 0) session_.idle_.set();
  }
  presence(const presence&) = delete;
  presence& operator=(const presence&) = delete;

 private:
  session& session_;
};

server_url session::checked(const config& settings) {
  auto parsed = parse_server_url(settings.server);
  if (!parsed) {
    throw_unusable(settings,
                   "server \"" + quoted_line(settings.server) + "\" " + parsed.error().message);
  }
  return std::move(*parsed);
}

session::session(asio::any_io_executor executor, config settings, client_options options,
                 client_environment environment)
    : executor_(std::move(executor)),
      config_(std::move(settings)),
      options_(std::move(options)),
      environment_(environment),
      own_watchdog_(environment_.watchdog, environment_.clock, executor_),
      server_(checked(config_)),
      random_(environment.make_random()),
      bucket_(options_.requests_per_second, options_.burst),
      metrics_(environment_.metrics, options_.name),
      authenticator_(executor_, config_, server_.host, server_.tls, environment_,
                     [this] { retire(); }),
      connections_(executor_, http_options(),
                   {authenticator_.transport(), environment_.watchdog, environment_.log,
                    environment_.metrics}),
      warnings_(warnings_kept),
      idle_(executor_),
      background_(executor_) {
  check_fields(config_, options_);
}

http::client_options session::http_options() const {
  http::client_options out{.name = options_.name, .host = server_.host, .port = server_.port};
  out.limits.connections = options_.connections;
  out.limits.streams = streams;
  out.limits.body_bytes = options_.response_bytes;
  out.limits.header_table = 0;  // thousands of API servers, of which most are only watched
  out.limits.connect = options_.connect;
  out.limits.exchange = options_.request;
  const auto proxy = config_.proxy_url.empty() ? proxy_of_environment(server_) : config_.proxy_url;
  if (!proxy.empty()) {
    auto parsed = parse_proxy_url(proxy);
    if (!parsed) throw_unusable(config_, "proxy-url " + parsed.error().message);
    out.proxy = {std::move(parsed->host), parsed->port, std::move(parsed->authorization)};
  }
  // The environment's proxy is ours; what names resolve to is its own affair then.
  out.refuse_local = config_.refuse_local && (!out.proxy || !config_.proxy_url.empty());
  boost::system::error_code no_address;
  const auto literal = boost::asio::ip::make_address(server_.host, no_address);
  if (config_.refuse_local && !no_address && core::is_local(literal)) {
    throw_unusable(config_, "server " + server_.host + " is an address of this machine or its link",
                   errc::address_refused);
  }
  return out;
}

/// Returns false if the call is not to be sent.
bool session::begin(const call& request) {
  const core::thread_owner::scope here(owner_);
  if (request.wrong) return false;
  if (!closed_ && !std::exchange(started_, true)) background_.spawn(own_watchdog_.run());
  return true;
}

asio::awaitable<result<http::response>> session::perform(call* request) {
  const auto self = shared_from_this();
  if (!begin(*request)) co_return *request->wrong;
  const presence here(*this);
  request->wire.target.insert(0, server_.prefix);
  core::backoff backoff(options_.retry_base, options_.retry_limit, std::ref(random_));
  const auto limit =
      request->bounds.deadline.count() > 0 ? request->bounds.deadline : options_.deadline;
  const auto until = environment_.clock.now() + limit;
  bool doubted = false;
  for (unsigned tries = 1;; ++tries) {
    attempt now{.until = until};
    co_await try_once(request, &now);
    if (!now.failed) co_return std::move(now.response);
    if (now.failed->status == 401 && !std::exchange(doubted, true) &&
        authenticator_.mark_suspect(now.generation)) {
      --tries;
      continue;
    }
    // What a connection at its end did not take goes to another one at once, for the first time.
    const bool overtaken = now.facts.not_taken && tries == 1;
    const core::duration wait =
        overtaken ? core::duration::zero() : now.failed->retry_after + backoff.next();
    if (tries > options_.retries || !worth_retrying(*request, now) ||
        environment_.clock.now() + wait + shortest_attempt > until) {
      if (tries > 1) now.failed->message += ", at attempt " + std::to_string(tries);
      co_return std::move(*now.failed);
    }
    note_retry(*request, now, wait);
    co_await pause(wait);
  }
}

bool session::worth_retrying(const call& request, const attempt& last) const {
  if (closed_ || last.failed->retry_after > options_.retry_limit) return false;
  if (!request.bounds.retry) return last.facts.not_taken;
  auto facts = last.facts;
  facts.repeatable = !request.writes;
  return worth_another_try(*last.failed, facts);
}

/// One attempt, counted.
asio::awaitable<void> session::try_once(call* request, attempt* now) {
  co_await exchange(request, now);
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none && now->failed && !closed_) {
    throw boost::system::system_error(asio::error::operation_aborted);
  }
  const auto status = now->failed ? now->failed->status : now->response.status;
  metrics_.count(request->operation, status, now->failed ? label_of(*now->failed) : "");
}

void session::fail(const call& request, attempt& now, errc code, const std::string& cause) const {
  now.failed = failure{.code = code, .message = "cannot " + request.text() + ": " + cause};
}

asio::awaitable<void> session::exchange(call* request, attempt* now) {
  if (!closed_ && !authenticator_.ready()) {
    const auto failed = co_await authenticator_.prepare();
    if (failed) fail(*request, *now, static_cast<errc>(failed->code.value()), failed->message);
  }
  if (!closed_ && !now->failed) co_await await_turn(request, now);
  if (closed_) fail(*request, *now, errc::shut_down, make_error_code(errc::shut_down).message());
  if (now->failed) co_return;

  const auto left = [&] {
    return std::chrono::ceil<milliseconds>(now->until - environment_.clock.now());
  };
  const auto kind =
      request->sink != nullptr ? http::exchange_kind::streaming : http::exchange_kind::unary;
  http::client_slot slot;
  const auto patience = std::clamp(left(), milliseconds(1), options_.connect + options_.request);
  auto error = co_await connections_.acquire(slot, patience, kind);
  now->facts.nothing_sent = error.failed();
  if (error) co_return judge(*request, error, *now);

  write_head(*request);
  now->generation = authenticator_.generation();
  http::exchange_options options{.sink = request->sink,
                                 .limit = request->limit,
                                 .silence = request->silence,
                                 .body_bytes = options_.response_bytes,
                                 .permit = request->permit};
  if (request->sink == nullptr) {
    options.limit = std::clamp(left(), milliseconds(1), options_.request);
  } else if (!slot.multiplexed() && options.silence.count() == 0) {
    options.silence = options_.watch_silence;
  }
  if (request->permit && !request->permit->open()) {
    co_return fail(*request, *now, errc::fenced, make_error_code(errc::fenced).message());
  }
  const auto began = environment_.clock.now();
  // Not as one expression: gcc 14 awaits it twice.
  if (request->opened != nullptr && slot.multiplexed()) {
    error = co_await slot.open(request->wire, now->response, options, *request->opened);
  } else {
    error = co_await slot.exchange(request->wire, now->response, options);
  }
  if (request->sink == nullptr) metrics_.took(request->operation, environment_.clock.now() - began);
  judge(*request, error, *now);
}

/// The client's own rate limit. A call that would wait for longer than an attempt may take, or
/// beyond its deadline, fails at once.
asio::awaitable<void> session::await_turn(const call* request, attempt* now) {
  const core::duration patience = options_.connect + options_.request;
  const auto limit = std::min(patience, now->until - environment_.clock.now());
  const auto wait = bucket_.take(environment_.clock.now(), limit);
  if (!wait) {
    now->facts.nothing_sent = true;
    fail(*request, *now, errc::timed_out,
         "the client's own rate limit has no turn for it within " +
             std::to_string(std::chrono::duration_cast<milliseconds>(limit).count()) + " ms");
    co_return;
  }
  if (*wait <= core::duration::zero()) co_return;
  metrics_.limited(*wait);
  co_await pause(*wait);
  const auto state = co_await asio::this_coro::cancellation_state;
  const bool cancelled = state.cancelled() != asio::cancellation_type::none;
  if (closed_ || cancelled) bucket_.give_back();
  if (cancelled && !closed_) throw boost::system::system_error(asio::error::operation_aborted);
}

/// Waits, but not beyond the session's own end.
asio::awaitable<void> session::pause(core::duration length) {
  if (closed_ || length <= core::duration::zero()) co_return;
  const auto timer = environment_.clock.make_timer(executor_);
  struct sleeper {
    std::vector<core::timer*>& timers;
    core::timer* self;
    ~sleeper() { std::erase(timers, self); }
  };
  sleepers_.push_back(timer.get());
  const sleeper registered{sleepers_, timer.get()};
  timer->expires_at(environment_.clock.now() + length);
  co_await timer->wait();
}

/// The header's fields, which change with the credentials.
void session::write_head(call& request) const {
  auto& fields = request.wire.headers;
  fields.clear();
  fields.add("accept", request.accept);
  fields.add("user-agent", options_.user_agent);
  if (!authenticator_.authorization().empty()) {
    fields.add("authorization", authenticator_.authorization());
  }
  add_impersonation(config_, fields);
  if (!request.content_type.empty()) fields.add("content-type", request.content_type);
  for (std::size_t i = 0; i < request.beside.size(); ++i) {
    fields.add(request.beside[i].name, request.beside[i].value);
  }
}

/// Turns the outcome of an exchange into the attempt's.
void session::judge(const call& request, boost::system::error_code error, attempt& now) {
  if (error == client_error::abandoned) error = {};  // the sink had what it wanted
  if (!error) {
    note_warnings(request, now.response.headers);
    if (request.bounds.date != nullptr) {
      *request.bounds.date = parse_http_date(now.response.headers.get("date"));
    }
    if (now.response.status / 100 == 2) return;
    now.failed = failure_of(now.response, "cannot " + request.text(), environment_.clock.wall());
    now.facts.told_when = !now.response.headers.get("retry-after").empty();
    return;
  }
  const bool known = error.category() == http::client_category();
  const auto kind = known ? static_cast<client_error>(error.value()) : client_error::closed;
  now.facts.not_taken = kind == client_error::not_processed;
  const bool connecting = kind == client_error::connect || kind == client_error::handshake ||
                          kind == client_error::proxy || kind == client_error::address_refused;
  auto cause = config_.server + ": " + error.message();
  const auto& refusal = connections_.connect_failure();
  if (connecting && !refusal.empty()) cause += ": " + refusal;
  // Servers that refuse it may say no more than that they close the connection.
  const bool refused = kind == client_error::handshake || kind == client_error::closed;
  if (refused && authenticator_.certificate_expired()) {
    cause += "; the client certificate has expired";
  }
  fail(request, now, errc_of(error), cause);
}

/// Logs what the server warns of (Kubernetes, "Warning: 299" fields, RFC 7234, section 5.5), each
/// text once: deprecated versions, fields that are unknown or have no effect.
void session::note_warnings(const call& request, const http::fields& headers) {
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (!http::iequals(headers[i].name, "warning")) continue;
    if (request.bounds.warnings != nullptr) {
      request.bounds.warnings->push_back(warning_text(headers[i].value));
      continue;
    }
    auto text = quoted_line(headers[i].value);
    if (warnings_.find(text) != nullptr) continue;
    warnings_.use(text);
    environment_.log.limited(
        warning_limit_, core::log_level::warning, "the API server warns of a request",
        {{"client", options_.name}, {"request", request.text()}, {"warning", text}});
  }
}

void session::note_retry(const call& request, const attempt& last, core::duration wait) {
  metrics_.retried();
  const auto length = std::chrono::duration_cast<milliseconds>(wait).count();
  environment_.log.limited(log_limit_, core::log_level::info,
                           "a request to the API server is tried again",
                           {{"client", options_.name},
                            {"request", request.text()},
                            {"error", last.failed->message},
                            {"wait_ms", std::int64_t{length}}});
}

asio::awaitable<void> session::close() {
  const auto self = shared_from_this();
  bool first = false;
  {
    const core::thread_owner::scope here(owner_);
    first = !std::exchange(closed_, true);
    const auto sleeping = sleepers_;
    for (auto* timer : sleeping) timer->cancel();
  }
  if (first) {
    co_await authenticator_.close();
    co_await connections_.close();
  }
  while (present_ > 0) co_await idle_.wait();
  background_.cancel();
  if (first) co_await background_.join();
}

}  // namespace rw::k8s
