#include "rw/reactors/kyma_router/kyma_router.hpp"

#include "rw/core/task_group.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/asio/error.hpp>
#include <boost/json/value.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <utility>

namespace rw::kyma_router {
namespace {

namespace asio = boost::asio;

constexpr std::size_t at_once = 64;  // maximum number of deltas received at once

std::string runtime_id_of(const k8s::object& kyma) {
  const auto value = kyma.parse();
  const auto id = k8s::label(value, runtime_id_label);
  return id ? std::string(*id) : std::string();
}

core::counter& count(core::metrics& metrics, const char* outcome) {
  return core::make_counter(metrics, "rw_kyma_router_events_total",
                            "Number of events of runtimes, by outcome", {{"outcome", outcome}});
}

}  // namespace

void index_by_runtime(k8s::informer& kymas) {
  kymas.add_index(runtime_index, [](const k8s::object& from, std::vector<std::string>& values) {
    if (auto id = runtime_id_of(from); !id.empty()) values.push_back(std::move(id));
  });
}

std::vector<k8s::object> kymas_of(const k8s::informer& kymas, std::string_view runtime_id) {
  return kymas.objects().by_index(runtime_index, runtime_id);
}

router::router(k8s::informer& kymas, destination to, router_options options,
               router_environment environment)
    : kymas_(kymas),
      to_(std::move(to)),
      options_(options),
      clock_(environment.clock),
      log_(environment.log),
      routed_(count(environment.metrics, "routed")),
      held_(count(environment.metrics, "held")),
      waiting_(count(environment.metrics, "waiting")),
      late_(count(environment.metrics, "late")),
      forgotten_(count(environment.metrics, "forgotten")) {}

void router::on_event(std::string_view runtime_id) {
  const auto found = kymas_of(kymas_, runtime_id);
  bool now = false;
  for (const auto& kyma : found) now = lead(kyma.key()) || now;
  if (!found.empty()) {
    (now ? routed_ : held_).Increment();
    return;
  }
  waiting_.Increment();
  std::string id(runtime_id);
  if (by_id_.contains(id) || options_.capacity == 0) return;
  if (by_id_.size() == options_.capacity) forget(in_order_.begin());
  const auto where = in_order_.insert(in_order_.end(), {id, clock_.now() + options_.patience});
  by_id_.emplace(std::move(id), where);
}

/// Enqueues the Kyma. Returns false if it is delayed.
bool router::lead(const k8s::object_key& kyma) {
  const auto now = clock_.now();
  auto& next = next_.use(kyma);
  const bool due = next <= now;
  to_(kyma, due ? core::duration::zero() : next - now);
  if (due) next = now + options_.interval;
  return due;
}

void router::forget(waiters::iterator which) {
  forgotten_.Increment();
  std::uint64_t suppressed = 0;
  if (log_limit_.pass(suppressed)) {
    log_.warning("event dropped: no Kyma has its runtime id",
                 {{"runtimeId", which->runtime_id}, {"suppressed", suppressed}});
  }
  by_id_.erase(which->runtime_id);
  in_order_.erase(which);
}

asio::awaitable<void> router::run() {
  const auto executor = co_await asio::this_coro::executor;
  core::task_group tasks(executor);
  tasks.spawn(follow());
  tasks.spawn(expire());
  co_await tasks.join();
}

/// Enqueues Kymas that appear after the first event of their runtime.
asio::awaitable<void> router::follow() {
  const auto changes = kymas_.subscribe(at_once);
  std::vector<k8s::delta> some;
  for (;;) {
    some.clear();
    const auto got = co_await changes->receive_some(some, at_once);
    if (got.has_error()) co_return;
    if (by_id_.empty()) continue;
    for (const auto& change : some) {
      if (!change.now) continue;
      const auto found = by_id_.find(runtime_id_of(change.now));
      if (found == by_id_.end()) continue;
      late_.Increment();
      in_order_.erase(found->second);
      by_id_.erase(found);
      lead(change.now.key());
    }
  }
}

asio::awaitable<void> router::expire() {
  const auto executor = co_await asio::this_coro::executor;
  const auto alarm = clock_.make_timer(executor);
  for (;;) {
    alarm->expires_at(clock_.now() + options_.patience / 4);
    const bool due = co_await alarm->wait();
    if (!due) throw boost::system::system_error(asio::error::operation_aborted);
    while (!in_order_.empty() && in_order_.front().until <= clock_.now()) {
      forget(in_order_.begin());
    }
  }
}

}  // namespace rw::kyma_router
