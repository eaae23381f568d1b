#include "rw/core/http/client.hpp"

#include "rw/core/config.hpp"
#include "rw/core/http/client_connection.hpp"
#include "rw/core/http/tunnel.hpp"
#include "rw/core/network.hpp"
#include "rw/core/resolver.hpp"
#include "rw/core/wake.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <array>
#include <list>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace rw::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// In the order of `client_error`, from 1 on.
constexpr std::array<const char*, 15> messages{
    "the server's name has no address",
    "the server does not accept connections",
    "the TLS handshake with the server failed",
    "the server did not answer in time",
    "the server closed the connection without an answer",
    "the server did not take the request",
    "the server's answer is not HTTP",
    "the server's answer is too large",
    "the client is being closed",
    "the answer was given up by who asked for it",
    "the proxy refuses to connect to the server",
    "the request was held back, the permit to send it is gone",
    "the server closed a kept connection while the request was on its way",
    "the request has a field of the connection, which the client sets by itself: host, "
    "content-length, transfer-encoding, connection, keep-alive, proxy-connection or upgrade",
    "the server's address is refused",
};

class category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "http client"; }
  std::string message(int value) const override {
    const auto at = static_cast<std::size_t>(value) - 1;
    return at < messages.size() ? messages[at] : "unknown error";
  }
};

/// Has the kernel look whether the peer is still there: after half a minute without a byte, and
/// for at most a minute. What is sent must be acknowledged within that time, too (RFC 9293, 3.8.3).
void notice_loss(tcp::socket& of) {
  const auto set = [&](int level, int name, int value) {
    ::setsockopt(of.native_handle(), level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

}  // namespace

const boost::system::error_category& client_category() noexcept {
  static const category instance;
  return instance;
}

std::string authority(const client_options& options, bool encrypted) {
  const bool v6 = options.host.find(':') != std::string::npos;
  auto result = v6 ? "[" + options.host + "]" : options.host;
  if (options.port != (encrypted ? 443 : 80)) result += ":" + std::to_string(options.port);
  return result;
}

class client::implementation : public std::enable_shared_from_this<implementation> {
 public:
  implementation(asio::any_io_executor executor, client_options options,
                 client_environment environment)
      : executor_(executor),
        options_(std::move(options)),
        own_watchdog_(environment.watchdog, own_clock_, executor),
        environment_(environment),
        opened_(core::make_counter(environment.metrics, "rw_http_client_connections_total",
                                   "Connections that were opened to the upstream",
                                   {{"client", options_.name}})),
        failed_(core::make_counter(environment.metrics, "rw_http_client_connect_errors_total",
                                   "Connections to the upstream that could not be opened",
                                   {{"client", options_.name}})),
        open_(core::make_gauge(environment.metrics, "rw_http_client_open_connections",
                               "Connections to the upstream that are open",
                               {{"client", options_.name}})),
        tasks_(executor) {}

  asio::awaitable<boost::system::error_code> acquire(client_slot* into,
                                                     std::chrono::milliseconds limit,
                                                     exchange_kind kind);
  bool try_acquire(client_slot& into, exchange_kind kind) {
    return !closed_ && waiting_.empty() && take(into, kind);
  }
  void retire();
  asio::awaitable<void> close();
  const std::string& connect_failure() const noexcept { return cause_; }

 private:
  /// One caller of `acquire`, in its coroutine frame: in the queue until it is served, and not
  /// beyond its own end, whichever way the wait ends.
  struct waiter {
    waiter(std::shared_ptr<implementation> in, exchange_kind exchange)
        : client(std::move(in)), kind(exchange), woken(client->executor_) {
      client->waiting_.push_back(this);
    }
    ~waiter() {
      if (!served) std::erase(client->waiting_, this);
    }
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    const std::shared_ptr<implementation> client;
    const exchange_kind kind;
    core::wake woken;
    boost::system::error_code error;
    client_slot slot;
    bool served = false;
  };

  bool take(client_slot& into, exchange_kind kind);
  void serve();
  bool may_open() const;
  void fail(boost::system::error_code error);
  asio::awaitable<void> open();
  void report(boost::system::error_code error, std::string cause);
  asio::awaitable<std::vector<tcp::endpoint>> resolve(std::string* error);
  asio::awaitable<boost::system::error_code> connect(tcp::socket* socket, std::string* cause);
  asio::awaitable<boost::system::error_code> shake_hands(core::stream* stream);
  asio::awaitable<void> drive(std::shared_ptr<client_connection> connection);

  const asio::any_io_executor executor_;
  const client_options options_;
  core::real_clock own_clock_;
  core::own_watchdog own_watchdog_;  ///< what `environment_` has if the host brought none
  bool is_watched_ = false;          ///< it runs
  const client_environment environment_;
  core::counter& opened_;
  core::counter& failed_;
  core::gauge& open_;
  core::log_limit connect_log_;
  std::vector<std::shared_ptr<client_connection>> connections_;
  std::list<waiter*> waiting_;
  std::shared_ptr<core::lookup> resolving_;
  std::string cause_;
  std::size_t first_address_ = 0;
  std::size_t retirements_ = 0;
  tcp::socket* connecting_ = nullptr;  ///< what a late connect is cancelled on
  bool opening_ = false;
  bool late_ = false;
  bool closed_ = false;
  core::task_group tasks_;
};

/// Gives `into` a slot on the oldest connection that can take one more, so that later ones fall
/// idle and are closed.
bool client::implementation::take(client_slot& into, exchange_kind kind) {
  const auto at = std::ranges::find_if(connections_, [](auto& c) { return c->can_take(); });
  if (at == connections_.end()) return false;
  into = client_slot(*at, kind);
  return true;
}

bool client::implementation::may_open() const {
  if (opening_ || closed_ || connections_.size() >= options_.limits.all_connections) return false;
  if (std::ranges::any_of(connections_, [](auto& c) { return c->settling(); })) return false;
  const auto counted = std::ranges::count_if(connections_, [](auto& c) { return c->counts(); });
  return static_cast<std::size_t>(counted) < options_.limits.connections;
}

/// Serves who waits, and opens a connection if that takes one.
void client::implementation::serve() {
  while (!waiting_.empty() && take(waiting_.front()->slot, waiting_.front()->kind)) {
    auto* first = waiting_.front();
    waiting_.pop_front();
    first->served = true;
    first->woken.set();
  }
  if (waiting_.empty() || !may_open()) return;
  opening_ = true;
  tasks_.spawn(open());
}

void client::implementation::fail(boost::system::error_code error) {
  for (auto* waiter : std::exchange(waiting_, {})) {
    waiter->served = true;
    waiter->error = error;
    waiter->woken.set();
  }
}

asio::awaitable<boost::system::error_code> client::implementation::acquire(
    client_slot* into, std::chrono::milliseconds limit, exchange_kind kind) {
  if (closed_) co_return client_error::shut_down;
  if (try_acquire(*into, kind)) co_return boost::system::error_code();
  if (own_watchdog_.is_own() && !std::exchange(is_watched_, true)) {
    tasks_.spawn(own_watchdog_.run());
  }
  waiter self(shared_from_this(), kind);
  core::deadline late;
  if (limit.count() > 0) {
    late = environment_.watchdog->watch(executor_, [&self] { self.woken.set(); });
    late.arm(environment_.watchdog->now() + limit);
  }
  serve();
  const auto interrupted = co_await self.woken.wait();
  if (!self.served) co_return interrupted ? interrupted : client_error::timed_out;
  *into = std::move(self.slot);
  co_return self.error;
}

/// The addresses of the host, or of its proxy; or why there are none, or none in time.
asio::awaitable<std::vector<tcp::endpoint>> client::implementation::resolve(std::string* failed) {
  const auto& host = options_.proxy ? options_.proxy->host : options_.host;
  const auto port = options_.proxy ? options_.proxy->port : options_.port;
  boost::system::error_code error;
  const auto literal = asio::ip::make_address(host, error);
  if (!error) co_return std::vector{tcp::endpoint(literal, port)};
  const auto lookup = core::resolver::of(executor_).begin(executor_, options_.name, host);
  resolving_ = lookup;
  co_await lookup->done.wait();
  resolving_.reset();
  std::vector<tcp::endpoint> endpoints;
  for (const auto& address : lookup->found) endpoints.emplace_back(address, port);
  *failed = "the name can't be resolved: " + lookup->error;
  co_return endpoints;
}

asio::awaitable<boost::system::error_code> client::implementation::connect(tcp::socket* socket,
                                                                           std::string* cause) {
  auto addresses = co_await resolve(cause);
  if (addresses.empty()) {
    if (late_) *cause = "the name can't be resolved in time";
    co_return late_ ? client_error::timed_out : client_error::resolve;
  }
  if (options_.refuse_local) {
    *cause = addresses.front().address().to_string() + " is an address of this machine or its link";
    std::erase_if(addresses, [](const auto& each) { return core::is_local(each.address()); });
    if (addresses.empty()) co_return client_error::address_refused;
  }
  for (std::size_t i = 0; i < addresses.size() && !late_; ++i) {
    const auto& address = addresses[(first_address_ + i) % addresses.size()];
    boost::system::error_code error;
    socket->close(error);
    error = co_await core::network::of(executor_).connect(socket, address);
    if (!error) notice_loss(*socket);
    if (!error) co_return error;
    *cause = error.message();
  }
  if (late_) *cause = make_error_code(client_error::timed_out).message();
  // One that swallows packets uses up all the time: next time another one comes first.
  ++first_address_;
  co_return late_ ? client_error::timed_out : client_error::connect;
}

asio::awaitable<boost::system::error_code> client::implementation::shake_hands(
    core::stream* stream) {
  for (;;) {
    const auto step = stream->handshake();
    if (step.wants == core::want::nothing) co_return step.error;
    const auto [error] = co_await core::ready(stream->socket(), step.wants);
    if (error || late_) co_return late_ ? client_error::timed_out : error;
  }
}

void client::implementation::report(boost::system::error_code error, std::string cause) {
  failed_.Increment();
  cause_ = std::move(cause);
  const auto proxy =
      options_.proxy ? options_.proxy->host + ":" + std::to_string(options_.proxy->port) : "";
  environment_.log.limited(connect_log_, core::log_level::warning, "cannot connect to the upstream",
                           {{"client", options_.name},
                            {"host", options_.host},
                            {"port", std::uint64_t{options_.port}},
                            {"proxy", proxy},
                            {"error", error.message()},
                            {"cause", cause_}});
}

asio::awaitable<void> client::implementation::open() {
  tcp::socket socket(executor_);
  std::unique_ptr<core::stream> stream;
  late_ = false;
  connecting_ = &socket;
  const auto retirements = retirements_;
  auto limit = environment_.watchdog->watch(executor_, [this] {
    late_ = true;
    boost::system::error_code ignored;
    if (connecting_ != nullptr) connecting_->cancel(ignored);
    if (resolving_) resolving_->done.set();
  });
  limit.arm(environment_.watchdog->now() + options_.limits.connect);
  std::string cause;
  auto error = co_await connect(&socket, &cause);
  if (!error && options_.proxy) {
    const auto tunnel = co_await open_tunnel(&socket, &options_, &late_);
    if (!tunnel.open) error = late_ ? client_error::timed_out : client_error::proxy;
    cause = tunnel.cause;
  }
  if (error && options_.proxy) {
    cause = "proxy " + core::to_string({options_.proxy->host, options_.proxy->port}) + ": " + cause;
  }
  if (!error) {
    stream = environment_.transport.wrap(std::move(socket));
    connecting_ = stream ? &stream->socket() : nullptr;
    if (stream) error = co_await shake_hands(stream.get());
    cause = error.message();
    if (!stream || (error && error != client_error::timed_out)) error = client_error::handshake;
  }
  connecting_ = nullptr;
  opening_ = false;
  if (closed_) co_return;
  if (error) {
    report(error, std::move(cause));
    fail(error);
    co_return;
  }
  opened_.Increment();
  const auto make =
      stream->protocol() == "h2" ? make_http2_client_connection : make_http1_client_connection;
  auto connection = make(options_, environment_, executor_, std::move(stream));
  connection->on_change([this] { serve(); });
  connections_.push_back(connection);
  // The certificates may have changed during the handshake.
  if (retirements != retirements_) connection->retire();
  // Counted up and down: clients of one name share the gauge.
  open_.Increment();
  tasks_.spawn(drive(connection));
  serve();
}

asio::awaitable<void> client::implementation::drive(std::shared_ptr<client_connection> connection) {
  try {
    co_await connection->run();
  } catch (const boost::system::system_error&) {
    // Cancelled: the client is being closed.
  }
  connection->on_change({});
  std::erase(connections_, connection);
  open_.Decrement();
  if (!closed_) serve();
}

void client::implementation::retire() {
  ++retirements_;
  const auto current = connections_;
  for (const auto& connection : current) connection->retire();
}

asio::awaitable<void> client::implementation::close() {
  closed_ = true;
  fail(client_error::shut_down);
  tasks_.cancel();
  co_await tasks_.join();
}

client_slot::client_slot(std::shared_ptr<client_connection> connection, exchange_kind kind)
    : connection_(std::move(connection)), kind_(kind) {
  connection_->take_slot(kind);
}

client_slot::~client_slot() {
  if (connection_) connection_->give_slot(kind_);
}

client_slot& client_slot::operator=(client_slot&& other) noexcept {
  const client_slot old(std::move(*this));
  connection_ = std::move(other.connection_);
  kind_ = other.kind_;
  return *this;
}

namespace {

/// A second `host` or `content-length` is for some servers a reason to refuse (RFC 9112, section
/// 3.2), and for others a way to smuggle another request; HTTP/2 has none of the others (RFC 9113,
/// section 8.2.2).
bool has_field_of_connection(const fields& of) {
  constexpr std::array<std::string_view, 7> names{
      "host",       "content-length", "transfer-encoding",
      "connection", "keep-alive",     "proxy-connection",
      "upgrade"};
  for (std::size_t i = 0; i < of.size(); ++i) {
    const auto name = of[i].name;
    const auto is_own = [&](std::string_view own) {
      return own.size() == name.size() && iequals(own, name);
    };
    if (std::ranges::any_of(names, is_own)) return true;
  }
  return false;
}

asio::awaitable<boost::system::error_code> refuse() {
  co_return client_error::field_of_connection;
}

}  // namespace

asio::awaitable<boost::system::error_code> client_slot::exchange(const request& request,
                                                                 response& into,
                                                                 exchange_options options) {
  if (has_field_of_connection(request.headers)) return refuse();
  return connection_->exchange(&request, &into, options);
}

asio::awaitable<boost::system::error_code> client_slot::open(
    const request& request, response& into, exchange_options options,
    std::unique_ptr<opened_exchange>& rest) {
  if (has_field_of_connection(request.headers)) return refuse();
  return connection_->open(&request, &into, options, this, &rest);
}

std::unique_ptr<opened_exchange> client_slot::begin(const request& request, response& into,
                                                    exchange_options options, end_handler on_end) {
  if (has_field_of_connection(request.headers)) return nullptr;
  return connection_->begin(request, into, std::move(options), std::move(on_end), *this);
}

bool client_slot::multiplexed() const noexcept {
  return connection_->multiplexed();
}

client::client(asio::any_io_executor executor, client_options options,
               client_environment environment)
    : impl_(
          std::make_shared<implementation>(std::move(executor), std::move(options), environment)) {}
client::~client() = default;
asio::awaitable<boost::system::error_code> client::acquire(client_slot& into,
                                                           std::chrono::milliseconds limit,
                                                           exchange_kind kind) {
  return impl_->acquire(&into, limit, kind);
}
bool client::try_acquire(client_slot& into, exchange_kind kind) {
  return impl_->try_acquire(into, kind);
}
const std::string& client::connect_failure() const noexcept {
  return impl_->connect_failure();
}
void client::retire() {
  impl_->retire();
}
asio::awaitable<void> client::close() {
  return impl_->close();
}

}  // namespace rw::http
