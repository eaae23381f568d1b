#include "rw/reactors/events/feed.hpp"

#include "rw/core/task_group.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace rw::observation {
namespace {

namespace asio = boost::asio;

/// Between the first and the second proof that a resource is not served.
constexpr core::duration unserved_for = std::chrono::seconds(30);

constexpr unsigned failures_until_given_up = 5;  ///< in a row; the list goes on

bool is_refusal(const k8s::failure& error) {
  return error.is(k8s::errc::unauthorized) || error.is(k8s::errc::forbidden) ||
         error.is(k8s::errc::not_found) || error.is(k8s::errc::method_not_allowed);
}

std::string selector_of(const observed_resource& resource) {
  std::string text;
  for (const auto& [key, value] : resource.labels) {
    text += (text.empty() ? "" : ",") + key + "=" + value;
  }
  return text;
}

const k8s::discovered_resource* find(const std::vector<k8s::discovered_resource>& in,
                                     std::string_view plural) {
  const auto at = std::ranges::find_if(
      in, [&](const auto& resource) { return resource.type.plural == plural; });
  return at == in.end() ? nullptr : &*at;
}

k8s::list_watch_options options_of(const observed_resource& resource) {
  return {.objects = {.labels = selector_of(resource)},
          .keep = k8s::projection::fields(
              {"spec", "status", "metadata.deletionTimestamp", "metadata.generation"}),
          .any_cost = true};
}

}  // namespace

/// The client, for lists in turns.
class feed::source final : public k8s::api_source {
 public:
  explicit source(feed& owner) : owner_(owner), api_(k8s::source_of(owner.environment_.api)) {}

  asio::any_io_executor get_executor() const noexcept override { return api_->get_executor(); }
  asio::awaitable<k8s::result<std::pair<unsigned, unsigned>>> server_version() override {
    return api_->server_version();
  }
  asio::awaitable<k8s::result<std::string>> list_text(k8s::resource_type type,
                                                      k8s::selection objects,
                                                      k8s::list_options page) override {
    co_await owner_.turn_.begin();
    auto text = co_await api_->list_text(std::move(type), std::move(objects), std::move(page));
    co_return text;
  }
  asio::awaitable<k8s::result<k8s::opened_watch>> open_watch(k8s::resource_type type,
                                                             k8s::selection objects,
                                                             k8s::watch_options options,
                                                             k8s::watch_sink& into) override {
    // It may be a list too.
    if (owner_.lists_) co_await owner_.turn_.begin();
    auto opened =
        co_await api_->open_watch(std::move(type), std::move(objects), std::move(options), into);
    co_return opened;
  }
  bool streams_lists() const noexcept override { return api_->streams_lists(); }
  void rule_out_streaming_lists() noexcept override { api_->rule_out_streaming_lists(); }

 private:
  feed& owner_;
  const std::shared_ptr<k8s::api_source> api_;
};

feed::feed(observed_resource resource, feed_options options, feed_environment environment)
    : resource_(std::move(resource)),
      options_(options),
      environment_(std::move(environment)),
      stopped_(environment_.api.get_executor()),
      turn_(environment_.turns),
      pause_(environment_.clock) {}

bool feed::has(const managed_watch& watch) const {
  return std::ranges::find(resource_.watches, watch) != resource_.watches.end();
}

bool feed::retain(const std::vector<managed_watch>& watches) {
  const auto is_gone = [&](const managed_watch& each) {
    return std::ranges::find(watches, each) == watches.end();
  };
  if (std::ranges::all_of(resource_.watches, is_gone)) return false;
  std::erase_if(resource_.watches, is_gone);
  return true;
}

asio::awaitable<void> feed::run(std::shared_ptr<feed> self) {
  core::backoff retry(self->options_.retry_base, self->options_.retry_limit,
                      self->environment_.random);
  while (!self->ended_) {
    auto found = co_await self->discover();
    bool is_away = false;
    self->reason_.clear();
    if (found) {
      self->unserved_since_.reset();
      if (std::exchange(self->is_absent_, false)) self->live_since_.reset();
      co_await self->observe(std::move(*found));
    } else {
      self->reason_ = found.error().message;
      is_away = found.error().status == 0;
      if (!self->is_absent_) co_await self->look_for_absence();
    }
    if (self->ended_ || self->reason_.empty()) co_return;
    self->give_up(self->reason_);
    core::duration delay = std::max(self->options_.retry_base, retry.next());
    if (self->unserved_since_ && !self->is_absent_) {
      const auto since = self->environment_.clock.now() - *self->unserved_since_;
      delay = std::min(delay, std::max(unserved_for - since, core::duration::zero()));
    }
    const auto paused =
        co_await self->pause_.wait(self->environment_.api.get_executor(), delay, is_away);
    if (!paused) co_return;
  }
}

/// Finds the resource's kind, and for any version the one that the server prefers.
asio::awaitable<k8s::result<k8s::discovered_resource>> feed::discover() {
  const auto& of = resource_.resource;
  std::vector<std::string> versions{of.version};
  if (of.version == "*") {
    auto served = co_await environment_.api.versions(of.group);
    if (!served) co_return served.error();
    versions = std::move(*served);
  }
  for (const auto& version : versions) {
    const k8s::group_version_kind gvk{of.group, version, {}};
    const auto resources = co_await environment_.api.resources(gvk.api_version());
    if (!resources) co_return resources.error();
    const auto* found = find(*resources, of.plural);
    const bool watchable =
        found != nullptr && std::ranges::find(found->verbs, "watch") != found->verbs.end();
    if (watchable) co_return *found;
  }
  co_return k8s::failure{.code = k8s::errc::not_found,
                         .message = "the API server does not serve watches of it"};
}

/// Returns true if discovery is complete and no version of the group has the resource.
asio::awaitable<bool> feed::is_unserved() {
  const auto& of = resource_.resource;
  const auto served = co_await environment_.api.versions(of.group);
  const bool readable = served && (!served->empty() || !of.group.empty());
  if (!readable) co_return false;
  for (const auto& version : *served) {
    const k8s::group_version_kind gvk{of.group, version, {}};
    const auto resources = co_await environment_.api.resources(gvk.api_version());
    if (!resources || find(*resources, of.plural) != nullptr) co_return false;
  }
  co_return true;
}

/// The definition of a resource may have been deleted, and its objects with it, while nobody
/// watched. An empty list shows that once it is proven twice: discovery has gaps while an API
/// server starts.
asio::awaitable<void> feed::look_for_absence() {
  const bool unserved = co_await is_unserved();
  const auto now = environment_.clock.now();
  if (!unserved) {
    unserved_since_.reset();
    co_return;
  }
  if (!unserved_since_) unserved_since_ = now;
  if (ended_ || now - *unserved_since_ < unserved_for) co_return;
  is_absent_ = true;
  for (const auto& watch : resource_.watches) {
    environment_.into.begin_listing(watch, now);
    environment_.into.end_listing(watch, now);
  }
}

asio::awaitable<void> feed::observe(k8s::discovered_resource found) {
  has_status_ = found.has_status;
  for (const auto& watch : resource_.watches) {
    environment_.into.set_type(watch, found.type, found.has_status);
  }
  k8s::list_watch driver(
      std::make_shared<source>(*this), found.type, options_of(resource_),
      {environment_.clock, environment_.log, environment_.metrics, environment_.random}, *this);
  driver_ = &driver;
  core::task_group tasks(environment_.api.get_executor());
  tasks.spawn(driver.run());
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await stopped_.wait();
  driver_ = nullptr;
  tasks.cancel();
  co_await tasks.join();
  turn_.end();
  co_await asio::this_coro::throw_if_cancelled(true);
}

void feed::stop(std::string_view reason) {
  if (!reason_.empty()) return;
  reason_ = reason;
  stopped_.set();
}

void feed::give_up(const std::string& reason) {
  live_since_ =
      is_absent_ ? std::optional(live_since_.value_or(environment_.clock.now())) : std::nullopt;
  for (const auto& watch : resource_.watches)
    environment_.into.give_up(watch, environment_.clock.now());
  environment_.on_input();
  if (std::exchange(given_up_, reason) == reason) return;
  environment_.log.warning("resource not observed, events come from reviews alone",
                           {{"group", resource_.resource.group},
                            {"resource", resource_.resource.plural},
                            {"reason", reason}});
}

void feed::end() {
  for (const auto& watch : resource_.watches)
    environment_.into.set_live(watch, false, environment_.clock.now());
  ended_ = true;
  stopped_.set();
}

void feed::list_again() {
  if (driver_ != nullptr && !lists_) driver_->list_again();
}

void feed::try_early() {
  if (driver_ != nullptr) driver_->try_early();
  pause_.end_early();
}

void feed::begin_listing() {
  lists_ = true;
  if (ended_) return;
  for (const auto& watch : resource_.watches)
    environment_.into.begin_listing(watch, environment_.clock.now());
}

void feed::put(k8s::object next) {
  if (ended_ || !reason_.empty()) return;
  const core::json_document document(next.text(), k8s::max_object_depth);
  for (const auto& watch : resource_.watches) {
    const auto state = state_of(document.root(), watch.field, has_status_);
    const bool taken = environment_.into.put(watch, next.key(), state, environment_.clock.now());
    if (!taken) stop("there are more objects than may be observed");
  }
}

void feed::remove(const k8s::object& last) {
  if (ended_ || !reason_.empty()) return;
  for (const auto& watch : resource_.watches)
    environment_.into.erase(watch, last.key(), environment_.clock.now());
}

void feed::end_listing() {
  lists_ = false;
  turn_.end();
  if (ended_ || !reason_.empty()) return;
  for (const auto& watch : resource_.watches)
    environment_.into.end_listing(watch, environment_.clock.now());
}

void feed::live(bool live) {
  if (ended_ || !reason_.empty()) return;
  if (live) {
    environment_.log.info("resource observed", {{"group", resource_.resource.group},
                                                {"resource", resource_.resource.plural}});
    given_up_.clear();
    failures_ = 0;
  }
  live_since_ = live ? std::optional(environment_.clock.now()) : std::nullopt;
  for (const auto& watch : resource_.watches)
    environment_.into.set_live(watch, live, environment_.clock.now());
  environment_.on_input();
}

void feed::request_failed(const k8s::failure& error) {
  turn_.end();
  if (is_refusal(error)) return stop(error.message);
  if (++failures_ == failures_until_given_up) give_up(error.message);
}

void feed::after_input() {
  if (driver_ != nullptr) driver_->report(0, 0);
  environment_.on_input();
}

}  // namespace rw::observation
