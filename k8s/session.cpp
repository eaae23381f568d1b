#include "k8s/session.hpp"

#include "k8s/retry.hpp"
#include "k8s/status.hpp"
#include "k8s/text.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <functional>
#include <utility>

namespace rw::k8s {
namespace {

namespace asio = boost::asio;
using http::client_error;

constexpr std::size_t streams = 250;                 // what a kube-apiserver grants
constexpr std::size_t watches_beside_requests = 64;  // on one HTTP/2 connection; 100 at the least
constexpr std::size_t most_watch_connections = 1024;

[[noreturn]] void refuse(const config& how, const std::string& why) {
  const auto from = how.source.empty() ? std::string("API server") : how.source;
  throw boost::system::system_error(make_error_code(errc::not_configured), from + ": " + why);
}

/// Requests and what stands in their header fields must be one line each.
void check_fields(const config& how, const client_options& options) {
  bool good = is_field_value(how.impersonate_user) && is_field_value(how.impersonate_uid);
  for (const auto& group : how.impersonate_groups) good = good && is_field_value(group);
  for (const auto& [name, value] : how.impersonate_extra) good = good && is_field_value(value);
  if (!good) refuse(how, "as, as-uid, as-groups or as-user-extra has control characters");
  if (!is_field_value(options.user_agent)) refuse(how, "user agent: has control characters");
}

/// Whom the server is to take the requests for (Kubernetes, "User impersonation"). Names of extra
/// fields may have characters that a field name may not; in HTTP/2 those are lower case.
void add_impersonation(const config& how, http::fields& into) {
  if (how.impersonate_user.empty()) return;
  into.add("impersonate-user", how.impersonate_user);
  if (!how.impersonate_uid.empty()) into.add("impersonate-uid", how.impersonate_uid);
  for (const auto& group : how.impersonate_groups) into.add("impersonate-group", group);
  for (const auto& [name, value] : how.impersonate_extra) {
    std::string field = "impersonate-extra-";
    append_percent_encoded(field, name);
    std::ranges::transform(field, field.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    into.add(field, value);
  }
}

errc code_of(client_error error) {
  switch (error) {
    case client_error::timed_out:
      return errc::timed_out;
    case client_error::protocol:
      return errc::bad_answer;
    case client_error::response_too_large:
      return errc::too_large;
    case client_error::shut_down:
      return errc::shut_down;
    case client_error::not_permitted:
      return errc::fenced;
    default:
      return errc::unreachable;
  }
}

/// The label `code` of what has no status.
std::string_view label_of(const failure& why) {
  switch (static_cast<errc>(why.code.value())) {
    case errc::timed_out:
      return "timed_out";
    case errc::bad_answer:
      return "bad_answer";
    case errc::too_large:
      return "too_large";
    case errc::fenced:
      return "fenced";
    case errc::not_configured:
      return "not_configured";
    case errc::shut_down:
      return "shut_down";
    default:
      return "unreachable";
  }
}

}  // namespace

/// One try of a call, and what came of it.
struct session::attempt {
  http::response answer;
  std::optional<failure> failed;
  attempt_facts facts;
  std::string cause;             ///< why there is no connection
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

/// A watch under way, or about to be. Where it goes is decided once, at its beginning.
class session::watching {
 public:
  watching(session& of, const call& what)
      : session_(of),
        beside_requests(what.sink != nullptr &&
                        of.watches_beside_requests_ < watches_beside_requests) {
    if (beside_requests) ++session_.watches_beside_requests_;
  }
  ~watching() {
    if (beside_requests) --session_.watches_beside_requests_;
  }
  watching(const watching&) = delete;
  watching& operator=(const watching&) = delete;

 private:
  session& session_;

 public:
  const bool beside_requests;  ///< on the connection that requests use, if that is shared
};

server_url session::checked(const config& how) {
  auto parsed = parse_server_url(how.server);
  if (!parsed) refuse(how, "server \"" + quoted_line(how.server) + "\" " + parsed.error().text);
  return std::move(*parsed);
}

session::session(asio::any_io_executor executor, config how, client_options options,
                 client_environment environment)
    : executor_(std::move(executor)),
      how_(std::move(how)),
      options_(std::move(options)),
      environment_(environment),
      server_(checked(how_)),
      random_(core::make_random_source()),
      bucket_(options_.requests_per_second, options_.burst),
      metrics_(environment_.metrics, options_.name),
      authenticator_(executor_, how_, server_.host, server_.tls, environment_,
                     [this] { retire(); }),
      idle_(executor_) {
  check_fields(how_, options_);
  connections_ = std::make_unique<http::client>(executor_, http_options(), http_environment());
}

http::client_environment session::http_environment() {
  return {authenticator_.transport(), environment_.watchdog, environment_.log,
          environment_.metrics};
}

http::client_options session::http_options() const {
  http::client_options out{.name = options_.name, .host = server_.host, .port = server_.port};
  out.limits.connections = options_.connections;
  out.limits.streams = streams;
  out.limits.body_bytes = options_.answer_bytes;
  out.limits.connect = options_.connect;
  out.limits.exchange = options_.request;
  out.permit = options_.writes;
  const auto proxy = how_.proxy_url.empty() ? proxy_of_environment(server_) : how_.proxy_url;
  if (!proxy.empty()) {
    auto parsed = parse_proxy_url(proxy);
    if (!parsed) refuse(how_, "proxy-url " + parsed.error().text);
    out.proxy = {std::move(parsed->host), parsed->port, std::move(parsed->authorization)};
  }
  return out;
}

http::client& session::connections_for(const call& what, const watching& place) {
  if (what.sink == nullptr || (multiplexed_ && place.beside_requests)) return *connections_;
  if (!watch_connections_) {
    auto options = http_options();
    options.limits.connections = most_watch_connections;
    watch_connections_ =
        std::make_unique<http::client>(executor_, std::move(options), http_environment());
  }
  return *watch_connections_;
}

asio::awaitable<boost::system::error_code> session::acquire(const call* what, const watching* place,
                                                            http::client_slot* into,
                                                            std::string* cause) {
  const auto limit = options_.connect + options_.request;
  auto* from = &connections_for(*what, *place);
  auto error = co_await from->acquire(*into, limit);
  if (!error && from == connections_.get()) {
    multiplexed_ = into->multiplexed();
    auto* better = &connections_for(*what, *place);
    if (better == from) co_return error;
    *into = {};
    from = better;
    error = co_await from->acquire(*into, limit);
  }
  if (error) *cause = from->connect_failure();
  co_return error;
}

asio::awaitable<result<http::response>> session::perform(call* what) {
  const auto self = shared_from_this();
  if (what->wrong) co_return *what->wrong;
  const presence here(*this);
  what->wire.target.insert(0, server_.prefix);
  core::backoff backoff(options_.retry_base, options_.retry_limit, std::ref(random_));
  bool doubted = false;
  unsigned tries = 0;
  for (;;) {
    attempt now;
    co_await try_once(what, &now);
    ++tries;
    if (!now.failed) co_return std::move(now.answer);
    if (now.failed->status == 401 && !std::exchange(doubted, true) &&
        authenticator_.doubt(now.generation)) {
      continue;
    }
    const auto asked = std::chrono::milliseconds(now.failed->retry_after);
    // A sink may have been fed already; only an answer other than 2xx shows that it was not.
    now.facts.repeatable = !what->writes && (what->sink == nullptr || now.failed->status != 0);
    if (closed_ || tries > options_.retries || asked > options_.retry_limit ||
        !worth_another_try(*now.failed, now.facts)) {
      if (tries > 1) now.failed->message += ", at attempt " + std::to_string(tries);
      co_return std::move(*now.failed);
    }
    const auto wait = asked + backoff.next();
    note_retry(*what, now, wait);
    co_await pause(wait);
  }
}

/// One attempt, counted.
asio::awaitable<void> session::try_once(call* what, attempt* into) {
  co_await exchange(what, into);
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none && into->failed &&
      into->failed->is(errc::shut_down) && !closed_) {
    throw boost::system::system_error(asio::error::operation_aborted);
  }
  const auto status = into->failed ? into->failed->status : into->answer.status;
  metrics_.count(what->what, status, into->failed ? label_of(*into->failed) : "");
}

void session::fail(const call& what, attempt& into, errc code, const std::string& why) {
  into.failed = failure{.code = code, .message = "cannot " + what.text() + ": " + why};
}

asio::awaitable<void> session::exchange(call* what, attempt* into) {
  if (closed_) {
    fail(*what, *into, errc::shut_down, make_error_code(errc::shut_down).message());
    co_return;
  }
  if (!authenticator_.ready()) {
    const auto trouble = co_await authenticator_.prepare();
    if (closed_) fail(*what, *into, errc::shut_down, make_error_code(errc::shut_down).message());
    if (trouble && !closed_) {
      fail(*what, *into, static_cast<errc>(trouble->code.value()), trouble->message);
    }
    if (into->failed) co_return;
  }
  co_await await_turn(what, into);
  if (into->failed) co_return;

  const watching place(*this, *what);
  http::client_slot slot;
  auto error = co_await acquire(what, &place, &slot, &into->cause);
  if (error) {
    into->facts.nothing_sent = true;
    judge(*what, error, *into);
    co_return;
  }
  write_head(*what);
  into->generation = authenticator_.generation();
  const http::exchange_options options{.sink = what->sink,
                                       .limit = what->limit,
                                       .silence = what->silence,
                                       .body_bytes = options_.answer_bytes,
                                       .guarded = what->writes};
  if (fenced(*what)) {
    fail(*what, *into, errc::fenced, make_error_code(errc::fenced).message());
    co_return;
  }
  const auto began = environment_.clock.now();
  error = co_await slot.exchange(what->wire, into->answer, options);
  if (what->sink == nullptr) metrics_.took(what->what, environment_.clock.now() - began);
  judge(*what, error, *into);
}

bool session::fenced(const call& what) const {
  return what.writes && options_.writes && !options_.writes->open();
}

/// A token of the client's own rate limit; it goes back unless the attempt is made.
class session::turn {
 public:
  explicit turn(core::token_bucket& from) : from_(&from) {}
  ~turn() {
    if (from_ != nullptr) from_->give_back();
  }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;

  void use() noexcept { from_ = nullptr; }

 private:
  core::token_bucket* from_;
};

/// The client's own rate limit. What would have to wait for longer than an attempt may take fails
/// at once.
asio::awaitable<void> session::await_turn(const call* what, attempt* into) {
  const auto limit = options_.connect + options_.request;
  const auto wait = bucket_.take(environment_.clock.now(), limit);
  if (!wait) {
    into->facts.nothing_sent = true;
    fail(*what, *into, errc::timed_out,
         "the client's own rate limit has no turn for it within " + std::to_string(limit.count()) +
             " ms");
    co_return;
  }
  if (*wait <= core::duration::zero()) co_return;
  turn mine(bucket_);
  metrics_.limited(*wait);
  co_await pause(*wait);
  if (closed_) {
    fail(*what, *into, errc::shut_down, make_error_code(errc::shut_down).message());
    co_return;
  }
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) {
    throw boost::system::system_error(asio::error::operation_aborted);
  }
  mine.use();
}

/// Waits, but not beyond the session's own end.
asio::awaitable<void> session::pause(core::duration length) {
  if (closed_) co_return;
  const auto timer = environment_.clock.make_timer(executor_);
  struct sleeper {
    std::vector<core::timer*>& all;
    core::timer* self;
    ~sleeper() { std::erase(all, self); }
  };
  sleepers_.push_back(timer.get());
  const sleeper registered{sleepers_, timer.get()};
  timer->expires_at(environment_.clock.now() + length);
  co_await timer->wait();
}

/// The header's fields, which change with the credentials.
void session::write_head(call& what) const {
  auto& fields = what.wire.headers;
  fields.clear();
  fields.add("accept", what.accept);
  fields.add("user-agent", options_.user_agent);
  if (!authenticator_.authorization().empty()) {
    fields.add("authorization", authenticator_.authorization());
  }
  add_impersonation(how_, fields);
  if (!what.content_type.empty()) fields.add("content-type", what.content_type);
}

/// Says what came of an exchange.
void session::judge(const call& what, boost::system::error_code error, attempt& into) {
  if (error == client_error::abandoned) error = {};  // the sink had what it wanted
  if (!error) {
    if (into.answer.status / 100 == 2) return;
    into.failed = failure_of(into.answer, "cannot " + what.text(), environment_.clock.wall());
    into.facts.told_when = !into.answer.headers.get("retry-after").empty();
    return;
  }
  const bool known = error.category() == http::client_category();
  const auto kind = known ? static_cast<client_error>(error.value()) : client_error::closed;
  if (kind == client_error::not_processed) into.facts.nothing_sent = true;
  const bool connecting = kind == client_error::connect || kind == client_error::handshake ||
                          kind == client_error::proxy;
  auto why = how_.server + ": " + error.message();
  if (connecting && !into.cause.empty()) why += ": " + into.cause;
  // Servers that refuse it may say no more than that they close the connection.
  const bool refused = kind == client_error::handshake || kind == client_error::closed;
  if (refused && authenticator_.certificate_expired()) {
    why += "; the client certificate has expired";
  }
  fail(what, into, code_of(kind), why);
}

void session::note_retry(const call& what, const attempt& last, core::duration wait) {
  metrics_.retried();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(wait).count();
  environment_.log.limited(log_limit_, core::log_level::info,
                           "a request to the API server is tried again",
                           {{"client", options_.name},
                            {"request", what.text()},
                            {"error", last.failed->message},
                            {"wait_ms", std::int64_t{milliseconds}}});
}

void session::retire() {
  if (connections_) connections_->retire();
  if (watch_connections_) watch_connections_->retire();
}

asio::awaitable<void> session::close() {
  const auto self = shared_from_this();
  const bool first = !std::exchange(closed_, true);
  const auto sleeping = sleepers_;
  for (auto* timer : sleeping) timer->cancel();
  if (first) {
    co_await authenticator_.close();
    co_await connections_->close();
    if (watch_connections_) co_await watch_connections_->close();
  }
  while (present_ > 0) co_await idle_.wait();
}

}  // namespace rw::k8s
