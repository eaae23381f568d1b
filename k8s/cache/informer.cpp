#include "rw/k8s/cache/informer.hpp"

#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/cache/subscribers.hpp"
#include "rw/k8s/objects/object_set.hpp"

#include <exception>
#include <utility>

namespace rw::k8s {
namespace {

namespace asio = boost::asio;

}  // namespace

class informer::implementation final : object_sink {
 public:
  implementation(std::shared_ptr<api_source> api, resource_type type, informer_options options,
                 const informer_environment& environment)
      : driver(api, std::move(type), std::move(options), environment, *this),
        api_(std::move(api)),
        clock_(environment.clock) {}

  static asio::awaitable<void> run(std::shared_ptr<implementation> self);
  static asio::awaitable<bool> wait_synced(std::shared_ptr<implementation> self);

  /// Nothing comes any more.
  void end();
  void report() { driver.report(objects.size(), listeners.pending()); }

  list_watch driver;
  store objects;
  subscribers listeners{[this] { report(); }};
  bool synced = false;
  std::optional<informer::error> failing;

 private:
  static asio::awaitable<void> work(std::shared_ptr<implementation> self);

  // object_sink
  void begin_listing() override;
  void put(object next) override;
  void keep(const object& over_budget) override;
  void remove(const object& last) override;
  void end_listing() override;
  void after_input() override { report(); }
  void live(bool is_live) override {
    if (is_live) failing.reset();
  }
  void request_failed(const failure& cause) override {
    failing = error{cause, failing ? failing->since : clock_.now()};
  }

  const std::shared_ptr<api_source> api_;
  core::clock& clock_;
  object_set unseen_;  ///< while listing: what was there before and has not been listed yet
  core::wake_list waiting_{api_->get_executor()};  ///< for the first list
  bool ended_ = false;
};

asio::awaitable<void> informer::implementation::run(std::shared_ptr<implementation> self) {
  core::task_group tasks(self->api_->get_executor());
  self->listeners.run_in(&tasks);
  tasks.spawn(work(self));
  std::exception_ptr failure;
  try {
    co_await tasks.join();
  } catch (...) {
    failure = std::current_exception();
  }
  self->end();
  if (failure) std::rethrow_exception(failure);
}

void informer::implementation::end() {
  ended_ = true;
  listeners.run_in(nullptr);
  listeners.close();
  waiting_.wake_all();
  report();
}

asio::awaitable<bool> informer::implementation::wait_synced(std::shared_ptr<implementation> self) {
  if (!self->synced && !self->ended_) co_await self->waiting_.wait();
  co_return self->synced;
}

asio::awaitable<void> informer::implementation::work(std::shared_ptr<implementation> self) {
  co_await self->driver.run();
}

void informer::implementation::begin_listing() {
  unseen_.clear();
  unseen_.reserve(objects.size());
  objects.for_each([this](const object& each) { unseen_.insert(each); });
}

void informer::implementation::put(object next) {
  if (!unseen_.empty()) unseen_.erase(next);
  const auto before = objects.put(next);
  if (!before || !same_state(before, next)) listeners.tell(before, next);
}

void informer::implementation::keep(const object& over_budget) {
  if (!unseen_.empty()) unseen_.erase(over_budget);
  const auto before = objects.get(over_budget.ns(), over_budget.name());
  if (before && before.uid() != over_budget.uid()) remove(before);  // that one was deleted
}

void informer::implementation::remove(const object& last) {
  if (!unseen_.empty()) unseen_.erase(last);
  const auto before = objects.erase(last.ns(), last.name());
  if (before) listeners.tell(before, {});
}

void informer::implementation::end_listing() {
  const auto gone = std::exchange(unseen_, {});
  for (const auto& each : gone) remove(each);
  if (!std::exchange(synced, true)) waiting_.wake_all();
  report();
}

informer::informer(std::shared_ptr<api_source> api, resource_type type, informer_options options,
                   informer_environment environment)
    : impl_(std::make_shared<implementation>(std::move(api), std::move(type), std::move(options),
                                             std::move(environment))) {}

informer::~informer() {
  impl_->end();
}

asio::awaitable<void> informer::run() {
  return implementation::run(impl_);
}

informer::subscription informer::subscribe(std::size_t capacity) {
  auto added = impl_->listeners.add(capacity, impl_->objects);
  impl_->report();
  return added;
}

bool informer::synced() const noexcept {
  return impl_->synced;
}

asio::awaitable<bool> informer::wait_synced() {
  return implementation::wait_synced(impl_);
}

const std::optional<informer::error>& informer::failing() const noexcept {
  return impl_->failing;
}

std::optional<core::time_point> informer::suspect_since() const noexcept {
  return impl_->driver.suspect_since();
}

const store& informer::objects() const noexcept {
  return impl_->objects;
}

void informer::add_index(const std::string& name, store::index_function by) {
  impl_->objects.add_index(name, std::move(by));
}

void informer::remove_index(const std::string& name) {
  impl_->objects.remove_index(name);
}

const std::string& informer::resource_version() const noexcept {
  return impl_->driver.resource_version();
}

const resource_type& informer::type() const noexcept {
  return impl_->driver.type();
}

}  // namespace rw::k8s
