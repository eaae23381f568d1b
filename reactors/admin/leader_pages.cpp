#include "rw/reactors/admin/leader_pages.hpp"

#include "rw/core/wake.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace rw::admin {

namespace asio = boost::asio;
namespace {

/// The leader sends something each 15 s.
constexpr std::chrono::seconds silence(40);

}  // namespace

/// What the leader sends to one viewer. The viewer's source ends it by going.
struct leader_pages::relay final : http::body_sink {
  relay(asio::any_io_executor executor, http::client_environment with, const leader_address& to,
        const leader_pages_options& options)
      : client(executor,
               {.name = "leader",
                .host = to.at.host,
                .port = to.at.port,
                .limits = {.body_bytes = options.response_bytes}},
               with),
        pending_bytes(options.pending_bytes),
        begun(executor) {
    request.method = "GET";
    request.headers.add("authorization", "Bearer " + to.token);
    request.headers.add(std::string(forwarded_field), "1");
  }

  void begin() override { begun.set(); }
  bool take(std::string_view bytes) override {
    if (is_left || pending.size() + bytes.size() > pending_bytes) return false;
    pending += bytes;
    if (ready) ready();
    return true;
  }

  http::client client;
  const std::size_t pending_bytes;
  http::request request;
  http::response response;
  core::wake begun;  ///< the leader accepts, or `is_over`
  std::string pending;
  std::function<void()> ready;
  std::string error;
  bool is_left = false;  ///< by the viewer
  bool is_over = false;
};

class leader_pages::relay_source final : public http::body_source {
 public:
  explicit relay_source(std::shared_ptr<relay> of) : relay_(std::move(of)) {}
  ~relay_source() override {
    relay_->is_left = true;
    relay_->ready = nullptr;
  }

  state read(std::string& into, std::size_t room) override {
    const auto part = std::min(room, relay_->pending.size());
    into.append(relay_->pending, 0, part);
    relay_->pending.erase(0, part);
    if (!relay_->pending.empty()) return state::more;
    return relay_->is_over ? state::broken : state::pending;
  }

  void on_ready(std::function<void()> ready) override { relay_->ready = std::move(ready); }

 private:
  const std::shared_ptr<relay> relay_;
};

leader_pages::leader_pages(asio::any_io_executor executor, http::client_environment environment,
                           find_leader find, leader_pages_options options)
    : executor_(executor),
      environment_(environment),
      find_(std::move(find)),
      options_(options),
      running_(std::move(executor), [](std::exception_ptr failure) {
        if (failure) std::rethrow_exception(failure);
      }) {}

leader_pages::~leader_pages() = default;

/// Ends when the leader has, or when the viewer is gone and the leader sends something.
asio::awaitable<void> leader_pages::run(std::shared_ptr<relay> of) {
  co_await asio::this_coro::throw_if_cancelled(false);
  http::client_slot slot;
  auto error = co_await of->client.acquire(slot, {}, http::exchange_kind::streaming);
  if (!error) {
    error =
        co_await slot.exchange(of->request, of->response, {.sink = of.get(), .silence = silence});
  }
  of->is_over = true;
  if (error) {
    of->error = error.message();
  } else if (of->response.status != 200) {
    of->error = "it responds " + std::to_string(of->response.status);
  }
  slot = {};
  of->begun.set();
  if (of->ready) of->ready();
  co_await of->client.close();
}

asio::awaitable<std::string> leader_pages::forward(std::string target, http::response& into) {
  const bool is_live = std::string_view(target).starts_with("/live");
  const auto leader = co_await find_();
  if (!leader.error.empty()) co_return leader.error;
  const auto address = core::to_string(leader.at);
  auto made = std::make_shared<relay>(executor_, environment_, leader, options_);
  made->request.target = target;
  if (!is_live) {
    http::client_slot slot;
    auto error = co_await made->client.acquire(slot);
    if (!error) error = co_await slot.exchange(made->request, made->response);
    slot = {};
    co_await made->client.close();
    if (error) co_return "no response from " + address + ": " + error.message();
    if (made->response.status != 200 && made->response.status != 400) {
      co_return address + " responds " + std::to_string(made->response.status);
    }
    into.status = made->response.status;
    into.headers.add("content-type", std::string(made->response.headers.get("content-type")));
    into.body = std::move(made->response.body);
    co_return std::string();
  }
  running_.spawn(run(made));
  const auto cancelled = co_await made->begun.wait();
  if (cancelled || made->is_over) {
    made->is_left = true;
    co_return "no response from " + address + ": " + made->error;
  }
  into.headers.add("content-type", "text/event-stream");
  into.source = std::make_unique<relay_source>(std::move(made));
  co_return std::string();
}

asio::awaitable<void> leader_pages::close() {
  running_.cancel();
  co_await running_.join();
}

}  // namespace rw::admin
