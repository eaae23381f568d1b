#include "rw/reactors/watcher_installer/installation.hpp"

#include "rw/core/gather.hpp"
#include "rw/core/within.hpp"
#include "rw/k8s/objects/difference.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_controller/workload.hpp"
#include "rw/reactors/shared/field_owners.hpp"
#include "rw/reactors/watcher_installer/pods.hpp"
#include "rw/reactors/watcher_installer/webhooks.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

namespace rw::watcher_installer {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr auto update_limit = std::chrono::seconds(2);  // of telling pods of a new Secret
using k8s::find_string;

const k8s::resource_type webhooks_type{
    {"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"},
    "validatingwebhookconfigurations",
    false};

std::string label_of(const json::value& object) {
  return std::string(find_string(object, {"kind"})) + " " + k8s::key_of(object).name;
}

/// The watcher works without its rights to watch resources, which this manager can only give if it
/// has them itself.
bool is_optional(const json::value& object) {
  return find_string(object, {"apiVersion"}).starts_with("rbac.authorization.k8s.io/");
}

/// True if no review is answered without it.
bool is_essential(const json::value& object) {
  return is(object, "ValidatingWebhookConfiguration", skr_webhook_name) ||
         is(object, "Secret", secret_name) || is(object, "Deployment", skr_webhook_name) ||
         is(object, "Service", skr_webhook_name);
}

/// One object of the installation.
struct part {
  json::value wanted = {};
  std::optional<json::value> present = {};
  bool leave = false;  ///< it is not to be written now
  bool held = false;   ///< it is to be as it is, but for the runtime's own facts
};

using answer = k8s::result<json::value>;

/// One reconcile of a runtime: reads, decision, writes.
class pass {
 public:
  pass(std::shared_ptr<k8s::client> api, const install_options& options, known_bundles& known,
       order order, core::clock& clock)
      : api_(std::move(api)),
        options_(options),
        known_(known),
        desired_(std::move(order)),
        clock_(clock),
        now_(clock.wall()) {}

  asio::awaitable<k8s::result<outcome>> run();

 private:
  asio::awaitable<k8s::result<void>> read();
  asio::awaitable<void> hear_pods();
  asio::awaitable<void> update_pods(std::string before);
  std::string secret_version();
  void decide();
  void hold_deployment(const inputs& runtime);
  asio::awaitable<k8s::result<void>> ensure_namespace();
  asio::awaitable<k8s::result<void>> write();
  void stamp_bundle(const std::vector<part*>& written);
  asio::awaitable<k8s::result<void>> write_rank(std::vector<part*> parts);
  asio::awaitable<k8s::result<void>> drop_unwanted_webhooks();
  asio::awaitable<k8s::result<void>> narrow_managers();
  asio::awaitable<k8s::result<void>> observe_pods();
  void conclude();

  part& find(std::string_view kind, std::string_view name) {
    return *std::ranges::find_if(parts_,
                                 [&](const part& part) { return is(part.wanted, kind, name); });
  }
  const json::value* present(std::string_view kind, std::string_view name) {
    const auto& object = find(kind, name).present;
    return object ? &*object : nullptr;
  }
  present_objects present_now() {
    return {.secret = present("Secret", secret_name),
            .configuration = present("ValidatingWebhookConfiguration", skr_webhook_name),
            .deployment = present("Deployment", skr_webhook_name),
            .known = &known_};
  }
  bool differs(const part& part) const;
  bool is_to_be_taken_over(const part& part) const;
  std::string contested() const;
  asio::awaitable<answer> write_one(part* part);
  bool is_left_out(part& part, const answer& got);
  void leave_what_needs_a_certificate();

  const std::shared_ptr<k8s::client> api_;
  const install_options& options_;
  known_bundles& known_;
  order desired_;
  core::clock& clock_;
  std::chrono::system_clock::time_point now_;  ///< of the reads, then of the decision
  bool bundle_grows_ = false;                  ///< its time is that of the write
  std::vector<part> parts_;
  bool namespace_there_ = true;
  bool keeps_former_webhooks_ = false;
  std::optional<std::string> replaces_ = {};  ///< content in place, where it is the runtime's turn
  pods_word loaded_ = {};                     ///< what the pods say of what is in place
  outcome out_;
};

asio::awaitable<k8s::result<void>> pass::read() {
  for (const auto& manifest : options_.manifests.objects()) parts_.push_back({.wanted = manifest});
  std::vector<asio::awaitable<answer>> work;
  for (const auto& each : parts_) {
    work.push_back(api_->get(type_of(each.wanted), k8s::key_of(each.wanted)));
  }
  work.push_back(api_->get(namespaces_type(), {{}, std::string(skr_namespace)}));
  auto answers = co_await core::gather(std::move(work));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    auto& got = answers[i];
    const bool missing = got.has_error() && got.error().is(k8s::errc::not_found);
    if (i < parts_.size() && is_left_out(parts_[i], got)) continue;
    if (got.has_error() && !missing) co_return got.error();
    if (i == parts_.size()) {
      namespace_there_ = !missing;
    } else if (!missing) {
      parts_[i].present = std::move(*got);
    }
  }
  co_return k8s::result<void>();
}

/// Takes the pods' word, if it may shorten a wait.
asio::awaitable<void> pass::hear_pods() {
  auto has = observe(present_now());
  out_.awaits_pods = awaits_word(has, options_.delays, now_);
  if (!out_.awaits_pods || desired_.reports.empty()) co_return;
  const auto names = co_await list_pods(api_.get(), present("Deployment", skr_webhook_name));
  loaded_ = has.loaded = word_of(names, desired_.reports, has);
  out_.awaits_pods = awaits_word(has, options_.delays, now_);
}

std::string pass::secret_version() {
  const auto* const secret = present("Secret", secret_name);
  return secret == nullptr ? std::string() : std::string(k8s::resource_version_of(*secret));
}

/// What the pods have said is not about a Secret that this pass has written. `before`: its version
/// when they spoke.
asio::awaitable<void> pass::update_pods(std::string before) {
  const auto now = secret_version();
  if (now == before || api_->is_dry()) co_return;
  loaded_ = {};
  out_.awaits_pods = true;
  if (before.empty()) co_return;
  const auto* const deployment = present("Deployment", skr_webhook_name);
  // Nothing depends on it, and it may not use up the time of the pass.
  auto update = request_update(api_.get(), deployment, now, options_.field_manager);
  co_await core::within(clock_, clock_.now() + update_limit, std::move(update));
}

/// True if the part could not be read or written, and is not needed.
bool pass::is_left_out(part& part, const answer& got) {
  if (!got.has_error() || !got.error().is(k8s::errc::forbidden)) return false;
  if (!is_optional(part.wanted)) return false;
  part.leave = true;
  out_.unobserved = "the watcher can't watch resources: " + got.error().message;
  return true;
}

void pass::decide() {
  now_ = clock_.wall();
  std::vector<managed_watch> watches;
  for (const auto& each : desired_.watchers) watches.push_back(watch_of(each));
  desired_.trust.managers = known_managers(std::move(watches));
  desired_.trust.restart_on_renewal = options_.restart_on_renewal;
  auto has = observe(present_now());
  has.loaded = loaded_;
  out_.trust = summary_of(has);
  auto step = next_step(desired_.trust, has, options_.delays, now_);
  bundle_grows_ = step.bundle_since == k8s::format_micro_time(now_);
  out_.pending = step.pending;
  out_.again = step.again;
  if (desired_.trust.certificate.empty()) out_.pending = desired_.certificate_pending;
  if (desired_.trust.certificate.empty() || out_.again == core::duration::zero()) {
    out_.again = desired_.certificate_again;
  }
  if (step.certificate.empty()) leave_what_needs_a_certificate();
  std::vector<watcher> known;
  std::set<std::string, std::less<>> former;
  for (const auto& each : desired_.watchers) {
    if (!step.in_effect || step.in_effect->knows(watch_of(each))) {
      known.push_back(each);
    } else {
      former.insert(webhook_name(each.key));
    }
  }
  const auto* const configuration = present("ValidatingWebhookConfiguration", skr_webhook_name);
  auto kept =
      webhooks_of(configuration, [&](std::string_view name) { return former.contains(name); });
  std::vector<json::value> unknown;
  if (desired_.keeps_webhook) unknown = webhooks_of(configuration, desired_.keeps_webhook);
  const bool has_unknown = !unknown.empty();
  std::ranges::move(unknown, std::back_inserter(kept));
  keeps_former_webhooks_ = !kept.empty();
  const inputs runtime{.address = desired_.address,
                       .ca_bundle = step.bundle.pem(),
                       .bundle_since = std::move(step.bundle_since),
                       .certificate = std::move(step.certificate),
                       .key = std::move(step.key),
                       .certificate_since = std::move(step.certificate_since),
                       .restart_trigger = std::move(step.restart_trigger),
                       .watchers = std::move(known),
                       .kept_webhooks = std::move(kept),
                       .managers = std::move(step.managers),
                       .managers_since = std::move(step.managers_since),
                       .observed = desired_.trust.managers};
  auto objects = render(options_.manifests, options_.set, runtime);
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].wanted = std::move(objects[i]);
  for (auto& part : parts_) {  // there may be no such role
    const bool is_role = is(part.wanted, "ClusterRole", observer_role);
    if (has_unknown && is_role && part.present) keep_rights(part.wanted, *part.present);
  }
  hold_deployment(runtime);
}

/// What waits for its turn does not get the newest or pinned content. What has yet another one than
/// the completed stays but for the runtime's own facts: the completed would come to many at once.
void pass::hold_deployment(const inputs& runtime) {
  auto& deployment = find("Deployment", skr_webhook_name);
  if (desired_.pinned) deployment.wanted = render_deployment(desired_.pinned->value, runtime);
  const auto newest = content_of(deployment.wanted);
  const auto completed = desired_.completed ? content_of(desired_.completed->value) : newest;
  const bool is_missing = !deployment.present;
  if (!desired_.may_update || (is_missing && completed == newest)) return;
  const auto in_place = is_missing ? std::string() : content_of(*deployment.present);
  out_.awaits_turn = !desired_.may_update(in_place);
  if (!out_.awaits_turn) replaces_ = in_place;
  if (!out_.awaits_turn) return;
  if (is_missing || (desired_.completed && in_place == completed)) {
    deployment.wanted = render_deployment(desired_.completed->value, runtime);
    return;
  }
  deployment.held = true;
  deployment.wanted = *deployment.present;
  fill_facts(deployment.wanted, runtime);
  deployment.leave = !differs(deployment);
}

/// Pods without a certificate would only fail; those that run keep theirs. Webhooks without a
/// server would only delay writes, and the first certificate.
void pass::leave_what_needs_a_certificate() {
  find("Secret", secret_name).leave = true;
  auto& deployment = find("Deployment", skr_webhook_name);
  deployment.leave = !deployment.present.has_value();
  auto& configuration = find("ValidatingWebhookConfiguration", skr_webhook_name);
  configuration.leave = !configuration.present.has_value();
}

bool pass::differs(const part& part) const {
  if (!part.present) return true;
  if (k8s::find_difference(part.wanted, *part.present)) return true;
  return is(part.wanted, "ValidatingWebhookConfiguration", skr_webhook_name) &&
         !unwanted_webhooks(part.wanted, *part.present).empty();
}

/// By its first write here; later the former manager owns what both apply.
bool pass::is_to_be_taken_over(const part& part) const {
  return part.present && !applies_fields(*part.present, options_.field_manager) &&
         applies_fields(*part.present, options_.former_manager);
}

/// The object that the former manager keeps; empty: none.
std::string pass::contested() const {
  if (options_.former_runs && !*options_.former_runs) return {};
  for (const auto& part : parts_) {
    if (part.leave || !part.present || !differs(part)) continue;
    const auto since =
        written_after(*part.present, options_.field_manager, options_.former_manager);
    if (since && now_ - *since < options_.contest_pause) return label_of(part.wanted);
  }
  return {};
}

/// Takes over what the former manager owns before, so that nothing of it remains that is not
/// wanted.
asio::awaitable<answer> pass::write_one(part* part) {
  // Other content may have been pinned since the decision.
  const bool has_turn = replaces_ && part == &find("Deployment", skr_webhook_name);
  if (has_turn && !desired_.may_update(*replaces_)) {
    co_return k8s::failure{.code = k8s::errc::fenced, .message = "its turn has ended"};
  }
  const auto type = type_of(part->wanted);
  if (part->held) {
    k8s::write_options by{.field_manager = options_.field_manager};
    auto updated = co_await api_->update(type, part->wanted, std::move(by));
    co_return updated;
  }
  const bool has_others = part->present && (is_to_be_taken_over(*part) ||
                                            written_after(*part->present, options_.field_manager,
                                                          options_.former_manager));
  auto change =
      has_others ? take_over_fields(*part->present, options_.field_manager, options_.former_manager)
                 : std::nullopt;
  if (change) {
    k8s::write_options by{.field_manager = options_.field_manager};
    auto taken = co_await api_->patch(type, k8s::key_of(part->wanted), k8s::patch_type::merge,
                                      std::move(*change), std::move(by));
    if (!taken) co_return taken;
    ++out_.writes;
  }
  k8s::apply_options options{.field_manager = options_.field_manager, .force = true};
  auto written = co_await api_->apply(type, part->wanted, std::move(options));
  co_return written;
}

/// Clusters have it long before; new ones may not.
asio::awaitable<k8s::result<void>> pass::ensure_namespace() {
  if (namespace_there_) co_return k8s::result<void>();
  json::value object = {
      {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", skr_namespace}}}};
  ++out_.writes;
  const auto made = co_await api_->create(namespaces_type(), std::move(object));
  if (made || made.error().is(k8s::errc::already_exists)) co_return k8s::result<void>();
  co_return made.error();
}

asio::awaitable<k8s::result<void>> pass::write_rank(std::vector<part*> parts) {
  std::vector<asio::awaitable<answer>> work;
  for (auto* each : parts) {
    work.push_back(write_one(each));
    out_.changes.push_back(label_of(each->wanted));
  }
  out_.writes += parts.size();
  auto answers = co_await core::gather(std::move(work));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto& got = answers[i];
    if (is_left_out(*parts[i], got)) continue;
    if (!got) co_return got.error();
    parts[i]->present = std::move(*got);
  }
  co_return k8s::result<void>();
}

/// The replicas of the API server have their time from when the bundle is written on, however long
/// the requests before took.
void pass::stamp_bundle(const std::vector<part*>& written) {
  if (!bundle_grows_) return;
  for (auto* const part : written) {
    if (!is(part->wanted, "ValidatingWebhookConfiguration", skr_webhook_name)) continue;
    k8s::set_annotation(part->wanted, bundle_since_annotation,
                        k8s::format_micro_time(clock_.wall()));
  }
}

asio::awaitable<k8s::result<void>> pass::write() {
  std::vector<part*> parts;
  for (auto& part : parts_) {
    if (!part.leave && (differs(part) || is_to_be_taken_over(part))) parts.push_back(&part);
  }
  if (parts.empty()) co_return k8s::result<void>();
  const auto made = co_await ensure_namespace();
  if (!made) co_return made.error();
  for (auto begin = parts.begin(); begin != parts.end();) {
    const auto rank = rank_of((*begin)->wanted);
    const auto end = std::find_if(begin, parts.end(),
                                  [&](const part* part) { return rank_of(part->wanted) != rank; });
    std::vector<part*> of_one_rank(begin, end);
    stamp_bundle(of_one_rank);
    const auto done = co_await write_rank(std::move(of_one_rank));
    if (!done) co_return done.error();
    begin = end;
  }
  co_return k8s::result<void>();
}

/// Apply leaves webhooks in place that another client, such as kubectl, wrote as well.
asio::awaitable<k8s::result<void>> pass::drop_unwanted_webhooks() {
  auto& configuration = find("ValidatingWebhookConfiguration", skr_webhook_name);
  if (!configuration.present) co_return k8s::result<void>();
  const auto names = unwanted_webhooks(configuration.wanted, *configuration.present);
  if (names.empty()) co_return k8s::result<void>();
  auto object = *configuration.present;
  retain_webhooks(
      object, [&](std::string_view name) { return std::ranges::find(names, name) == names.end(); });
  ++out_.writes;
  k8s::write_options options{.field_manager = options_.field_manager};
  auto done = co_await api_->update(webhooks_type, std::move(object), std::move(options));
  if (!done) co_return done.error();
  configuration.present = std::move(*done);
  co_return k8s::result<void>();
}

/// Webhooks of managers that are not in the file would lose their events, so it comes last, and not
/// while a Watcher that has changed its manager keeps the former webhook.
asio::awaitable<k8s::result<void>> pass::narrow_managers() {
  if (keeps_former_webhooks_) co_return k8s::result<void>();
  auto& secret = find("Secret", secret_name);
  const auto since = k8s::annotation(secret.wanted, managers_since_annotation);
  const auto text = render_managers(desired_.trust.managers, since);
  const bool narrow = k8s::secret_data(secret.wanted, managers_entry) == text;
  if (secret.leave || narrow) co_return k8s::result<void>();
  k8s::set_secret_data(secret.wanted, managers_entry, text);
  std::vector<part*> only{&secret};
  auto done = co_await write_rank(std::move(only));
  co_return done;
}

asio::awaitable<k8s::result<void>> pass::observe_pods() {
  const auto* deployment = present("Deployment", skr_webhook_name);
  if (deployment == nullptr) {
    out_.not_ready = status_reason::no_certificate;
    out_.details = out_.pending;
    co_return k8s::result<void>();
  }
  const auto pods = co_await inspect_pods(api_.get(), *deployment);
  if (!pods) co_return pods.error();
  out_.ready = k8s::find_number(*deployment, {"status", "readyReplicas"}) > 0;
  if (!out_.ready) {
    out_.not_ready = reason_of_pod(pods->reason);
    out_.details = pods->message;
    if (out_.not_ready != pods->reason) out_.details = pods->reason + ": " + out_.details;
  }
  out_.rolled_out = is_rolled_out(*deployment);
  const bool never_ran = !out_.ready && k8s::generation_of(*deployment) == 1;
  if (!out_.contested.empty() || (never_ran && !out_.awaits_turn)) co_return k8s::result<void>();
  using enum content_health;
  out_.content = {.in_place = content_of(*deployment),
                  .health = out_.rolled_out ? ready
                            : pods->lasting ? failed
                                            : progressing,
                  .error = pods->error()};
  co_return k8s::result<void>();
}

void pass::conclude() {
  for (const auto& part : parts_) {
    if (!is_essential(part.wanted)) continue;
    const auto key = k8s::key_of(part.wanted);
    // By name: the label of what Kyma manages stands on many objects of a runtime.
    out_.left.add(type_of(part.wanted), key,
                  part.present ? k8s::resource_version_of(*part.present) : std::string(),
                  {.ns = key.ns, .fields = "metadata.name=" + key.name});
  }
  // What was only dry-run is not in place.
  if (api_->is_dry()) return;
  const auto has = observe(present_now());
  out_.trust = summary_of(has);
  out_.is_loaded = loaded_.bundle && loaded_.certificate;
}

asio::awaitable<k8s::result<outcome>> pass::run() {
  auto done = co_await read();
  if (!done) co_return done.error();
  co_await hear_pods();
  decide();
  const auto before = secret_version();
  out_.contested = contested();
  const bool writes = out_.contested.empty();
  if (writes) done = co_await write();
  if (writes && done) done = co_await drop_unwanted_webhooks();
  if (writes && done) done = co_await narrow_managers();
  co_await update_pods(before);
  if (done) done = co_await observe_pods();
  if (!done) co_return done.error();
  conclude();
  co_return std::move(out_);
}

}  // namespace

asio::awaitable<k8s::result<outcome>> install(std::shared_ptr<k8s::client> api,
                                              const install_options* options, known_bundles* known,
                                              order order, core::clock* clock) {
  pass installation(std::move(api), *options, *known, std::move(order), *clock);
  auto done = co_await installation.run();
  co_return done;
}

}  // namespace rw::watcher_installer
