#include "rw/reactors/dev/source_watch.hpp"

#include "rw/core/task_group.hpp"
#include "rw/reactors/shared/trust_bundles_type.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace rw::dev {
namespace {

namespace asio = boost::asio;

}  // namespace

source_watch::source_watch(k8s::client& api, bootstrapper_sources names,
                           k8s::informer_environment in) {
  for (const auto source : all_sources) {
    auto key = names.key_of(source);
    k8s::selection selection{.ns = key.ns, .fields = "metadata.name=" + key.name};
    auto informer =
        source == source::trust_bundle
            ? trust_bundle_informer(api, std::move(selection), in)
            : std::make_unique<k8s::informer>(
                  api, type_of(source), k8s::informer_options{.objects = std::move(selection)}, in);
    at(source) = {source, std::move(key), std::move(informer)};
  }
}

void source_watch::update(watched& watched, k8s::object now) {
  watched.now = std::move(now);
  watched.known = true;
  std::erase_if(listeners_, [](const auto& each) { return each.expired(); });
  const auto notified = listeners_;
  for (const auto& each : notified) {
    if (const auto listener = each.lock()) (*listener)();
  }
}

/// Ignores objects of other names, for servers without field selectors.
asio::awaitable<void> source_watch::follow(watched* watched) {
  const auto& informer = *watched->informer;
  const auto changes = watched->informer->subscribe();
  const bool synced = co_await watched->informer->wait_synced();
  if (!synced) co_return;
  for (;;) {
    update(*watched, informer.objects().get(watched->key));
    const auto change = co_await changes->receive();
    if (change.has_error()) co_return;
  }
}

asio::awaitable<void> source_watch::run() {
  const auto executor = co_await asio::this_coro::executor;
  core::task_group tasks(executor);
  for (auto& source : all_) {
    tasks.spawn(source.informer->run());
    tasks.spawn(follow(&source));
  }
  co_await tasks.join();
}

bool source_watch::ready() const noexcept {
  return std::ranges::all_of(all_, &watched::known);
}

std::shared_ptr<void> source_watch::subscribe(std::function<void()> changed) {
  auto listener = std::make_shared<std::function<void()>>(std::move(changed));
  listeners_.push_back(listener);
  return listener;
}

}  // namespace rw::dev
