#include "rw/reactors/dev/gateway/backends.hpp"

#include <boost/asio/this_coro.hpp>

#include <utility>

namespace rw::dev_gateway {

namespace asio = boost::asio;

backends::backends(asio::any_io_executor executor, backend_limits limits,
                   backend_environment environment)
    : executor_(executor),
      limits_(limits),
      environment_(environment),
      plain_(core::make_plain_transport()),
      closing_(executor) {}

backends::shared backends::find(const asio::ip::tcp::endpoint& at) {
  if (const auto found = all_.find(at); found != all_.end()) return found->second;
  make_room();
  auto made = std::make_shared<backend>();
  made->client = std::make_unique<http::client>(
      executor_,
      http::client_options{.name = "dev-gateway",
                           .host = at.address().to_string(),
                           .port = at.port(),
                           .limits = limits_.client},
      http::client_environment{*plain_, environment_.watchdog, environment_.log,
                               environment_.metrics});
  all_.emplace(at, made);
  return made;
}

void backends::make_room() {
  while (all_.size() >= limits_.backends) {
    auto oldest = all_.end();
    for (auto at = all_.begin(); at != all_.end(); ++at) {
      const bool idle = at->second->in_use == 0;
      const bool older = oldest == all_.end() || at->second->last_used < oldest->second->last_used;
      if (idle && older) oldest = at;
    }
    if (oldest == all_.end()) return;  // all are in use; the server bounds the number of requests
    closing_.spawn(close_one(std::move(oldest->second)));
    all_.erase(oldest);
  }
}

asio::awaitable<void> backends::close_one(shared backend) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await backend->client->close();
}

asio::awaitable<backends::outcome> backends::exchange(asio::ip::tcp::endpoint with,
                                                      const http::request* request,
                                                      http::response* into) {
  struct use {
    explicit use(shared of) : backend(std::move(of)) { ++backend->in_use; }
    ~use() { --backend->in_use; }
    use(const use&) = delete;
    use& operator=(const use&) = delete;
    shared backend;
  };
  const use current(find(with));
  current.backend->last_used = ++uses_;
  http::client_slot slot;
  auto error = co_await current.backend->client->acquire(slot);
  if (error) co_return outcome{error, false};
  error = co_await slot.exchange(*request, *into);
  co_return outcome{error, true};
}

asio::awaitable<void> backends::close() {
  co_await asio::this_coro::throw_if_cancelled(false);
  for (auto& [at, backend] : std::exchange(all_, {})) closing_.spawn(close_one(std::move(backend)));
  co_await closing_.join();
}

}  // namespace rw::dev_gateway
