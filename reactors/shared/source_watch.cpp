#include "reactors/shared/source_watch.hpp"

#include "core/task_group.hpp"
#include "k8s/objects/text.hpp"
#include "k8s/objects/types.hpp"
#include "reactors/shared/content_digest.hpp"
#include "reactors/shared/trust_bundles_type.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace rw {
namespace {

namespace asio = boost::asio;

}  // namespace

std::string digest_of(source which, const k8s::object& now) {
  content_digest digest;
  digest.add(to_string(which));
  if (!now) return digest.add(std::string_view("absent")).hex();
  const auto value = now.parse();
  const auto add = [&](std::string_view member) {
    const auto* const found = k8s::find(value, {member});
    const auto* const object = found == nullptr ? nullptr : found->if_object();
    const bool nothing = found == nullptr || (object != nullptr && object->empty());
    if (!nothing) digest.add(member).add(*found);
  };
  // Their order is part of the digest.
  for (const auto* member : {"data", "binaryData", "type", "spec"}) add(member);
  return digest.hex();
}

source_watch::source_watch(k8s::client& api, bootstrapper_sources names,
                           k8s::informer_environment in) {
  for (const auto which : all_sources) {
    auto key = names.key_of(which);
    k8s::selection what{.ns = key.ns, .fields = "metadata.name=" + key.name};
    auto informer =
        which == source::trust_bundle
            ? trust_bundle_informer(api, std::move(what), in)
            : std::make_unique<k8s::informer>(api, type_of(which),
                                              k8s::informer_options{.what = std::move(what)}, in);
    at(which) = {which, std::move(key), names.describe(which), std::move(informer)};
  }
}

void source_watch::update(watched& one, k8s::object now) {
  auto digest = digest_of(one.which, now);
  if (digest != one.digest) {
    const auto number = k8s::parse_number<std::uint64_t>(one.informer->resource_version());
    version_ = std::max(version_, number.value_or(std::numeric_limits<std::uint64_t>::max()));
  }
  one.now = std::move(now);
  one.digest = std::move(digest);
  std::erase_if(listeners_, [](const auto& each) { return each.expired(); });
  const auto notified = listeners_;
  for (const auto& each : notified) {
    if (const auto listener = each.lock()) (*listener)();
  }
}

/// Ignores objects of other names, for servers without field selectors.
asio::awaitable<void> source_watch::follow(watched* one) {
  const auto& informer = *one->informer;
  const auto changes = one->informer->subscribe();
  const bool synced = co_await one->informer->wait_synced();
  if (!synced) co_return;
  for (;;) {
    update(*one, informer.objects().get(one->key));
    const auto change = co_await changes->receive();
    if (change.has_error()) co_return;
  }
}

asio::awaitable<void> source_watch::run() {
  const auto executor = co_await asio::this_coro::executor;
  core::task_group tasks(executor);
  for (auto& one : all_) {
    tasks.spawn(one.informer->run());
    tasks.spawn(follow(&one));
  }
  co_await tasks.join();
}

bool source_watch::ready() const noexcept {
  return std::ranges::none_of(all_, &std::string::empty, &watched::digest);
}

std::string source_watch::not_ready() const {
  std::string text;
  for (const auto& one : all_) {
    if (one.digest.empty()) text += "not known yet: " + one.name + "\n";
  }
  return text;
}

std::string source_watch::digest() const {
  if (!ready()) return {};
  content_digest all;
  for (const auto& one : all_) all.add(std::string_view(one.digest));
  return all.hex();
}

std::shared_ptr<void> source_watch::subscribe(std::function<void()> changed) {
  auto listener = std::make_shared<std::function<void()>>(std::move(changed));
  listeners_.push_back(listener);
  return listener;
}

}  // namespace rw
