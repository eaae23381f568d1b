#include "rw/reactors/watcher_installer/global_inputs.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/probe.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/reactors/watcher_installer/access.hpp"
#include "rw/tls/certificate.hpp"

#include <algorithm>
#include <utility>

namespace rw::watcher_installer {
namespace {

/// The CAs that the gateway trusts, or why they must not go to the runtimes.
in_words<tls::ca_bundle> trust_in(const k8s::object& secret) {
  const auto name = "Secret " + std::string(gateway_secret_name);
  if (!secret) {
    return defect(name + " does not exist: the manager makes it from the root CA");
  }
  const auto value = secret.parse();
  auto trust = read_trust_bundle(value);
  if (trust.authorities.empty()) return defect(name + " has no CA bundle");
  // A bundle that was damaged, or cut short, stays away from the runtimes until the rotation has
  // repaired it.
  if (!trust.problem.empty()) return defect(name + ": " + trust.problem);
  const auto served = tls::certificate::from_pem(
      k8s::secret_data(value, certificate_entry).value_or(std::string()));
  if (!served || trust.authorities.issuer_of(*served) == nullptr) {
    return defect(name + ": ca.crt lacks the authority of tls.crt");
  }
  return std::move(trust.authorities);
}

bool is_same(const k8s::object& a, const k8s::object& b) {
  return a && b && k8s::same_state(a, b);
}

}  // namespace

global_inputs::global_inputs(const k8s::informer& gateways, const k8s::informer& gateway_secrets,
                             const k8s::informer& watchers, const k8s::informer& virtual_services,
                             foreseen_trust foreseen, input_names names, core::clock& clock)
    : gateways_(gateways),
      gateway_secrets_(gateway_secrets),
      foreseen_(std::move(foreseen)),
      names_(std::move(names)),
      clock_(clock),
      known_watchers_(watchers),
      watchers_(watchers, virtual_services) {}

template <class T>
bool global_inputs::last_valid<T>::update(k8s::object now, in_words<T> read, status_reason reason,
                                          time_point at) {
  from = std::move(now);
  if (read) {
    error.reset();
    if (value == *read) return false;
    value = std::move(*read);
    return true;
  }
  if (!error) error = {.reason = reason, .since = at};
  error->has_value = value.has_value();
  error->message = read.error().message +
                   (value ? "; runtimes keep the last valid one"
                          : "; until it is valid the watcher is installed nowhere anew, and "
                            "removed nowhere");
  return false;
}

bool global_inputs::refresh_address() {
  auto gateway = gateways_.objects().get(kcp_namespace, names_.gateway);
  if (is_same(gateway, address_.from)) return false;
  auto read = address_of(gateway, names_.gateway, names_.port);
  return address_.update(std::move(gateway), std::move(read), status_reason::gateway_invalid,
                         clock_.wall());
}

bool global_inputs::refresh_trust() {
  auto secret = gateway_secrets_.objects().get(names_.istio_namespace, gateway_secret_name);
  if (is_same(secret, trust_.from)) return false;
  auto foreseen = !secret && foreseen_ ? foreseen_() : std::nullopt;
  auto read = foreseen ? in_words<tls::ca_bundle>(std::move(*foreseen)) : trust_in(secret);
  return trust_.update(std::move(secret), std::move(read), status_reason::ca_bundle_invalid,
                       clock_.wall());
}

bool global_inputs::refresh_watchers() {
  auto now = watchers_.current().in_force;
  const auto has = [](const std::vector<watcher>& all, const k8s::object_key& key) {
    return std::ranges::find(all, key, &watcher::key) != all.end();
  };
  for (const auto& watcher : used_watchers_) {
    const bool known = std::ranges::any_of(
        gone_, [&](const gone_watcher& other) { return other.last.key == watcher.key; });
    if (has(now, watcher.key) || known || exists(watcher.key)) continue;
    gone_.push_back({.last = watcher, .since = clock_.wall()});
  }
  std::erase_if(gone_, [&](const gone_watcher& gone) {
    return exists(gone.last.key) || gone.until.value_or(core::time_point::max()) <= clock_.now();
  });
  if (!gone_.empty()) now = with_gone(std::move(now));
  if (seen_ && std::ranges::any_of(now, [this](const watcher& watcher) {
        return !seen_->contains(webhook_name(watcher.key));
      })) {
    auto all = *seen_;
    for (const auto& watcher : now) all.insert(webhook_name(watcher.key));
    seen_ = std::make_shared<const names>(std::move(all));
  }
  const bool changed = !std::ranges::equal(now, used_watchers_, same_webhook);
  used_watchers_ = std::move(now);
  return changed;
}

bool global_inputs::exists(const k8s::object_key& watcher) const {
  const auto found = known_watchers_.objects().get(watcher);
  return found && !k8s::is_being_deleted(found.parse());
}

/// Those that exist come first, if not all fit.
std::vector<watcher> global_inputs::with_gone(std::vector<watcher> now) const {
  std::vector<watcher_candidate> among;
  for (auto& watcher : now) among.push_back({.desired = watcher, .accepted = watcher});
  for (const auto& gone : gone_) {
    among.push_back({.desired = gone.last});
  }
  return choose_watchers(std::move(among)).in_force;
}

std::vector<watcher> global_inputs::gone() const {
  std::vector<watcher> out;
  for (const auto& gone : gone_) out.push_back(gone.last);
  return out;
}

void global_inputs::explain_gone(const k8s::object_key& watcher, definition_state definition,
                                 core::duration patience) {
  using enum definition_state;
  const auto found =
      std::ranges::find(gone_, watcher, [](const auto& gone) { return gone.last.key; });
  if (found == gone_.end()) return;
  const bool was_withdrawn = found->until.has_value();
  // Once it went with a definition it did, whatever is there by now. As long as that can't be read,
  // it may not be back.
  const bool is_away = definition == withdrawn || (was_withdrawn && definition == unknown);
  if (is_away || (!was_withdrawn && definition == renewed)) {
    found->until = clock_.now() + patience;
  }
  if (found->until) return;
  gone_.erase(found);
  std::erase_if(used_watchers_,
                [&](const auto& used_watcher) { return used_watcher.key == watcher; });
  ++version_;
}

void global_inputs::end_unknown() {
  if (!seen_) return;
  seen_.reset();
  ++version_;
}

std::function<bool(std::string_view name)> global_inputs::unknown_webhooks() const {
  if (!seen_) return {};
  // Those that come while a runtime is reconciled are not in what it is to have.
  return [seen = seen_](std::string_view name) {
    return name.ends_with(webhook_suffix) && name != probe_webhook && !seen->contains(name);
  };
}

std::uint64_t global_inputs::refresh() {
  const bool address = refresh_address();
  const bool trust = refresh_trust();
  const bool watchers = refresh_watchers();
  if (address || trust || watchers) ++version_;
  return version_;
}

std::vector<input_error> global_inputs::errors() const {
  std::vector<input_error> out;
  if (address_.error) out.push_back(*address_.error);
  if (trust_.error) out.push_back(*trust_.error);
  const auto withdrawn =
      std::ranges::count_if(gone_, [](const gone_watcher& gone) { return gone.until.has_value(); });
  if (withdrawn > 0) {
    out.push_back({.reason = status_reason::watchers_withdrawn,
                   .message = std::to_string(withdrawn) +
                              (withdrawn == 1 ? " Watcher is" : " Watchers are") +
                              " gone with the definition of the kind; runtimes keep the webhooks "
                              "for a while after that is back",
                   .since = std::ranges::min(gone_, {}, &gone_watcher::since).since,
                   .has_value = true});
  }
  std::ranges::sort(out, {}, &input_error::has_value);
  return out;
}

}  // namespace rw::watcher_installer
