// What goes with the definition of its kind in KCP, by whoever deletes that, still stands for what
// it stood for: webhooks of such Watchers stay, and runtimes of such Kymas are still there.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/definition.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/watcher_installer/watcher_installer.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace rw::watcher_installer {

namespace asio = boost::asio;
namespace json = boost::json;

/// How long a definition that was created then is still young: what existed before it may come
/// again. Nothing: it is not there.
core::duration watcher_installer::time_to_settle(
    std::optional<std::chrono::system_clock::time_point> created) const {
  if (!created) return options_.withdrawn_patience;
  const auto age = std::chrono::duration_cast<core::duration>(environment_.clock.wall() - *created);
  return options_.withdrawn_patience - std::max(age, core::duration::zero());
}

// --- Watchers --------------------------------------------------------------------------

/// A Watcher that is gone was deleted, or went with the definition of its kind.
asio::awaitable<void> watcher_installer::explain_gone_watchers() {
  const auto executor = co_await asio::this_coro::executor;
  const auto pause = environment_.clock.make_timer(executor);
  for (;;) {
    const auto woken = co_await watchers_gone_.wait();
    if (woken) co_return;
    for (const auto& gone : inputs_.gone()) {
      // An older definition had nothing to do with it. Clocks differ, by less.
      object_times times{.deleted = environment_.clock.wall() -
                                    std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                        options_.withdrawn_patience)};
      if (gone.created != std::chrono::system_clock::time_point()) times.created = gone.created;
      const auto definition =
          co_await find_definition_state(environment_.kcp, watchers_type(), times);
      if (definition) inputs_.explain_gone(gone.key, *definition, options_.withdrawn_patience);
    }
    apply_inputs();
    if (inputs_.gone().empty()) continue;
    pause->expires_at(environment_.clock.now() + options_.input_patience);
    const bool due = co_await pause->wait();
    if (!due) co_return;
  }
}

/// Webhooks of Watchers that this process has never seen stay while the definition is young, or not
/// there. One that may not be read counts as old as this process.
asio::awaitable<core::duration> watcher_installer::time_of_unknown() {
  const auto created = co_await find_definition_time(environment_.kcp, watchers_type());
  if (created) co_return time_to_settle(*created);
  if (!created.error().is(k8s::errc::forbidden)) co_return options_.input_patience;
  co_return began_ + options_.withdrawn_patience - environment_.clock.now();
}

/// Runs the controller. Before, all Watchers that there are have been read: what is asked after
/// that holds for those that were not there.
asio::awaitable<void> watcher_installer::run_controller() {
  const bool synced = co_await sources_.watchers.wait_synced();
  if (!synced) co_return;
  const auto left = co_await time_of_unknown();
  if (left <= core::duration::zero()) inputs_.end_unknown();
  co_await controller_.run();
}

asio::awaitable<void> watcher_installer::end_unknown() {
  const auto executor = co_await asio::this_coro::executor;
  const auto pause = environment_.clock.make_timer(executor);
  const bool synced = co_await sources_.watchers.wait_synced();
  if (!synced) co_return;
  while (inputs_.keeps_unknown()) {
    const auto left = co_await time_of_unknown();
    if (left <= core::duration::zero()) {
      inputs_.end_unknown();
      apply_inputs();
      co_return;
    }
    pause->expires_at(environment_.clock.now() + std::min(left, options_.input_patience));
    const bool due = co_await pause->wait();
    if (!due) co_return;
  }
}

// --- Kymas -----------------------------------------------------------------------------

/// The Kyma goes, or is gone: its runtime may still be there.
void watcher_installer::note_gone(const json::value& kyma) {
  gone_kymas_.push_back(times_of(kyma));
  clusters_.reopen();
  kymas_gone_.set();
}

/// The oldest certificate of a Kyma that only a former process knew.
std::optional<object_times> watcher_installer::oldest_orphan() const {
  std::optional<object_times> out;
  for (const auto* const from : sources_.certificates) {
    from->objects().for_each([&](const k8s::object& object) {
      const auto kyma = kyma_of_certificate(object);
      if (kyma.empty() || sources_.kymas.objects().get({std::string(kcp_namespace), kyma})) return;
      const auto times = times_of(object.parse());
      if (!k8s::has_label(object.parse(), managed_by_label) || !times.created) return;
      if (!out || *times.created < *out->created) out = {.created = times.created};
    });
  }
  return out;
}

/// Completes the states once all runtimes have one: before, they do not show what all of them have.
asio::awaitable<void> watcher_installer::complete_states() {
  const bool synced = co_await sources_.kymas.wait_synced();
  if (!synced) co_return;
  for (auto* each : sources_.certificates) {
    const bool known = co_await each->wait_synced();
    if (!known) co_return;
  }
  sources_.kymas.objects().for_each([this](const k8s::object& object) {
    const auto scope = scope_of(object.parse(), options_.only);
    if (scope == cluster_scope::unselected) clusters_.set_scope(object.key(), scope);
    if (scope == cluster_scope::managed && may_have_certificate(object.name())) {
      clusters_.expect(object.key());
    }
  });
  if (const auto orphan = oldest_orphan()) gone_kymas_.push_back(*orphan);
  for (;;) {
    const bool known = co_await know_all_kymas();
    if (!known) co_return;
    clusters_.complete();
    const auto woken = co_await kymas_gone_.wait();
    if (woken) co_return;
  }
}

/// Returns once no Kyma is missing that may come again with the definition of its kind; false: this
/// process ends.
asio::awaitable<bool> watcher_installer::know_all_kymas() {
  const auto executor = co_await asio::this_coro::executor;
  const auto pause = environment_.clock.make_timer(executor);
  for (;;) {
    for (const auto& times : std::exchange(gone_kymas_, {})) {
      if (kymas_withdrawn_) break;
      const auto definition = co_await find_definition_state(environment_.kcp, kymas_type(), times);
      kymas_withdrawn_ = !definition || is_by_definition(*definition);
    }
    if (!kymas_withdrawn_) co_return true;
    const auto created = co_await find_definition_time(environment_.kcp, kymas_type());
    kymas_withdrawn_ = !created || time_to_settle(*created) > core::duration::zero();
    if (!kymas_withdrawn_) continue;
    pause->expires_at(environment_.clock.now() + options_.input_patience);
    const bool due = co_await pause->wait();
    if (!due) co_return false;
  }
}

/// How long the certificate of a Kyma that is gone stays; thousands may ask at once.
asio::awaitable<k8s::result<core::duration>> watcher_installer::time_of_orphan(std::string kyma) {
  if (kymas_withdrawn_) co_return options_.withdrawn_patience;
  const auto now = environment_.clock.now();
  if (!kymas_defined_ || kymas_defined_->asked + std::chrono::seconds(1) < now) {
    const auto created = co_await find_definition_time(environment_.kcp, kymas_type());
    if (!created && created.error().is(k8s::errc::forbidden)) co_return core::duration::zero();
    if (!created) co_return created.error();
    kymas_defined_ = {.asked = now, .created = *created};
  }
  const auto certificate = own_certificate(kyma);
  if (!certificate) co_return core::duration::zero();
  const auto created = kymas_defined_->created;
  const bool stays =
      is_by_definition(state_of(created, {.created = k8s::created_at(certificate.parse())}));
  co_return stays ? time_to_settle(created) : core::duration::zero();
}

}  // namespace rw::watcher_installer
