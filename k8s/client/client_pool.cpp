#include "rw/k8s/client/client_pool.hpp"

#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/client/session.hpp"
#include "rw/k8s/config/config.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <utility>

namespace rw::k8s {

namespace asio = boost::asio;

struct client_pool::numbers {
  numbers(core::metrics& r, const std::string& pool)
      : clients(core::make_gauge(r, "rw_client_pool_clients", "Clients that the pool keeps",
                                 {{"pool", pool}})),
        closing(core::make_gauge(r, "rw_client_pool_closing",
                                 "Clients that were given up and are being closed",
                                 {{"pool", pool}})),
        made(core::make_counter(r, "rw_client_pool_made_total", "Clients that were made",
                                {{"pool", pool}})),
        capacity(given_up(r, pool, "capacity")),
        expired(given_up(r, pool, "expired")),
        replaced(given_up(r, pool, "replaced")),
        evicted(given_up(r, pool, "evicted")) {}

  static core::counter& given_up(core::metrics& r, const std::string& pool, const char* reason) {
    return core::make_counter(r, "rw_client_pool_given_up_total", "Clients that the pool gave up",
                              {{"pool", pool}, {"reason", reason}});
  }

  core::gauge& clients;
  core::gauge& closing;
  core::counter& made;
  core::counter& capacity;
  core::counter& expired;
  core::counter& replaced;
  core::counter& evicted;
};

/// Closes clients without holders. Outlives the pool while a client is held.
struct client_pool::closer : std::enable_shared_from_this<closer> {
  closer(const asio::any_io_executor& executor, core::gauge& number)
      : under_way(number), released(executor), tasks(executor) {}

  static asio::awaitable<void> end(std::unique_ptr<client> api, std::shared_ptr<closer> self) {
    self->under_way.Increment();
    co_await api->close();
    api.reset();
    self->under_way.Decrement();
    if (--self->held == 0) self->released.set();
  }

  std::shared_ptr<client> keep(std::unique_ptr<client> api) {
    ++held;
    return {api.release(), [self = shared_from_this()](client* over) {
              self->tasks.spawn(end(std::unique_ptr<client>(over), self));
            }};
  }

  core::gauge& under_way;
  std::size_t held = 0;  ///< clients that are not closed yet
  core::wake released;
  core::task_group tasks;
};

client_pool::client_pool(asio::any_io_executor executor, client_pool_options options,
                         client_environment environment)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      environment_(environment),
      numbers_(std::make_unique<numbers>(environment.metrics, options_.name)),
      random_(environment.make_random()),
      local_(options_.local),
      closer_(std::make_shared<closer>(executor_, numbers_->closing)),
      clients_(options_.capacity == 0 ? 1 : options_.capacity) {
  check_names(options_.client);
}

client_pool::~client_pool() = default;

core::time_point client_pool::now() const {
  return environment_.clock.now();
}

void client_pool::evict(const std::string& cluster) {
  give_up(cluster, numbers_->evicted);
}

void client_pool::give_up(const std::string& cluster, core::counter& reason) {
  if (!clients_.erase(cluster)) return;
  reason.Increment();
  publish();
}

void client_pool::publish() {
  numbers_->clients.Set(static_cast<double>(clients_.size()));
}

core::time_point client_pool::end_of_life() const {
  const auto tenth = static_cast<std::uint64_t>(options_.expiry.count()) / 10 + 1;
  return now() + options_.expiry -
         core::duration(static_cast<core::duration::rep>(random_() % tenth));
}

std::shared_ptr<client> client_pool::make(config configuration) {
  const client open(executor_, std::move(configuration), options_.client, environment_);
  auto made = std::make_unique<client>(open.fenced(options_.writes));
  numbers_->made.Increment();
  return closer_->keep(std::move(made));
}

result<std::shared_ptr<client>> client_pool::get(const std::string& cluster,
                                                 const std::string& kubeconfig) {
  if (closed_) return failure{.code = errc::shut_down, .message = "the client pool is closed"};
  const auto from = tls::sha256(kubeconfig);
  if (const auto* known = clients_.find(cluster)) {
    if (known->from == from && now() < known->until) return clients_.use(cluster).api;
    give_up(cluster, known->from == from ? numbers_->expired : numbers_->replaced);
  }
  auto config = parse_foreign_kubeconfig(kubeconfig, "of " + cluster, local_);
  if (!config) return config.error();
  std::shared_ptr<client> made;
  try {
    made = make(std::move(*config));
  } catch (const boost::system::system_error& e) {
    const std::string text(e.what());  // ends with that of the code, which says less
    return failure{.code = e.code(),
                   .message = text.substr(0, text.rfind(": " + e.code().message()))};
  }
  const auto before = clients_.size();
  clients_.use(cluster) = {made, from, end_of_life()};
  if (clients_.size() == before) numbers_->capacity.Increment();
  publish();
  return made;
}

asio::awaitable<void> client_pool::run() {
  const auto alarm = environment_.clock.make_timer(executor_);
  for (;;) {
    alarm->expires_at(now() + options_.expiry / 10 + std::chrono::seconds(1));
    const bool due = co_await alarm->wait();
    if (!due) co_return;
    const auto over =
        clients_.erase_if([time = now()](const entry& entry) { return entry.until <= time; });
    numbers_->expired.Increment(static_cast<double>(over));
    publish();
  }
}

asio::awaitable<void> client_pool::close() {
  closed_ = true;
  clients_.erase_if([](const entry&) { return true; });
  publish();
  co_await asio::this_coro::throw_if_cancelled(false);
  while (closer_->held > 0) co_await closer_->released.wait();
  co_await closer_->tasks.join();
}

namespace {

/// The copy of a pool's client, which keeps that.
std::shared_ptr<client> holding(const std::shared_ptr<client>& of, client copy) {
  struct holder {
    std::shared_ptr<client> kept;
    client copy;
  };
  auto clients = std::make_shared<holder>(holder{of, std::move(copy)});
  return {clients, &clients->copy};
}

}  // namespace

std::shared_ptr<client> dry(const std::shared_ptr<client>& of, std::shared_ptr<const bool> is_dry) {
  return holding(of, of->dry(std::move(is_dry)));
}

std::shared_ptr<client> previewing(const std::shared_ptr<client>& of,
                                   std::shared_ptr<write_preview> into) {
  return holding(of, of->previewing(std::move(into)));
}

bool is_unhealthy(const failure& error) noexcept {
  return error.is(errc::unreachable) || error.is(errc::timed_out) || error.is(errc::bad_response) ||
         error.is(errc::shut_down) || is_access_rejected(error);
}

}  // namespace rw::k8s
