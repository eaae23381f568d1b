#include "reactors/watcher_installer/installation.hpp"

#include "core/gather.hpp"
#include "k8s/difference.hpp"
#include "k8s/manifests.hpp"
#include "k8s/types.hpp"
#include "reactors/watcher_installer/pods.hpp"
#include "reactors/workload.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace rw::watcher_installer {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::find_string;

const k8s::resource_type pods{{"", "v1", "Pod"}, "pods", true};
const k8s::resource_type webhooks_type{
    {"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"},
    "validatingwebhookconfigurations",
    false};

k8s::resource_type type_of(const json::value& object) {
  // Templates have no other kinds.
  return *k8s::well_known_type(find_string(object, {"apiVersion"}), find_string(object, {"kind"}));
}

int rank_of(const json::value& object) {
  return k8s::apply_rank(find_string(object, {"apiVersion"}), find_string(object, {"kind"}));
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
};

using answer = k8s::result<json::value>;

}  // namespace

class visit::implementation {
 public:
  implementation(std::shared_ptr<k8s::client> api, const method& how, known_bundles& known)
      : api_(std::move(api)), how_(how), known_(known) {}

  asio::awaitable<k8s::result<void>> read();
  asio::awaitable<k8s::result<outcome>> bring(order what,
                                              std::chrono::system_clock::time_point now);

 private:
  k8s::result<void> decide();
  known_managers present_managers();
  asio::awaitable<k8s::result<void>> ensure_namespace();
  asio::awaitable<k8s::result<void>> write();
  asio::awaitable<k8s::result<void>> write_rank(std::vector<part*> some);
  asio::awaitable<k8s::result<void>> drop_unwanted_webhooks();
  asio::awaitable<k8s::result<void>> narrow_managers();
  asio::awaitable<k8s::result<void>> look_at_pods();

  part& find(std::string_view kind, std::string_view name) {
    return *std::ranges::find_if(parts_,
                                 [&](const part& one) { return is(one.wanted, kind, name); });
  }
  const json::value* present(std::string_view kind, std::string_view name) {
    const auto& one = find(kind, name).present;
    return one ? &*one : nullptr;
  }
  present_objects present_now() {
    return {.secret = present("Secret", secret_name),
            .configuration = present("ValidatingWebhookConfiguration", skr_webhook_name),
            .deployment = present("Deployment", skr_webhook_name),
            .known = &known_};
  }
  bool differs(const part& one) const;
  void leave_what_needs_a_certificate();
  void conclude();

  const std::shared_ptr<k8s::client> api_;
  const method& how_;
  known_bundles& known_;
  order what_;
  known_managers managers_;  ///< of the Watchers
  std::chrono::system_clock::time_point now_;
  std::vector<part> parts_;
  bool namespace_there_ = true;
  outcome out_;
};

asio::awaitable<k8s::result<void>> visit::implementation::read() {
  for (const auto& one : how_.manifests.objects()) parts_.push_back({.wanted = one});
  std::vector<asio::awaitable<answer>> work;
  for (const auto& each : parts_) {
    work.push_back(api_->get(type_of(each.wanted), k8s::key_of(each.wanted)));
  }
  work.push_back(api_->get(namespaces_type(), {{}, std::string(skr_namespace)}));
  auto answers = co_await core::gather(std::move(work));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    auto& got = answers[i];
    const bool missing = got.has_error() && got.error().is(k8s::errc::not_found);
    if (got.has_error() && !missing) co_return got.error();
    if (i == parts_.size()) {
      namespace_there_ = !missing;
    } else if (!missing) {
      parts_[i].present = std::move(*got);
    }
  }
  co_return k8s::result<void>();
}

/// Of the file that is on the runtime; nothing, if it is malformed.
known_managers visit::implementation::present_managers() {
  const auto* const secret = present("Secret", secret_name);
  if (secret == nullptr) return {};
  const auto text = k8s::secret_data(*secret, managers_entry);
  auto parsed = text ? parse_managers(*text) : managers_result(known_managers());
  return parsed ? std::move(*parsed) : known_managers();
}

k8s::result<void> visit::implementation::decide() {
  std::vector<managed_watch> watches;
  for (const auto& each : what_.watchers) watches.push_back(watch_of(each));
  managers_ = known_managers(std::move(watches));
  if (!fits_managers_file(managers_)) return defect("there are too many Watchers");
  auto in_file = merge(managers_, present_managers());
  if (!fits_managers_file(in_file)) in_file = managers_;
  auto step = next_step(what_.trust, present_now(), how_.delays, now_);
  out_.pending = step.pending;
  out_.again = step.again;
  if (what_.trust.certificate.empty()) out_.pending = what_.certificate_pending;
  if (what_.trust.certificate.empty() || out_.again == core::duration::zero()) {
    out_.again = what_.certificate_again;
  }
  if (step.certificate.empty()) leave_what_needs_a_certificate();
  auto objects = render(how_.manifests, how_.set,
                        {.address = what_.address,
                         .ca_bundle = step.bundle.pem(),
                         .bundle_since = std::move(step.bundle_since),
                         .certificate = std::move(step.certificate),
                         .key = std::move(step.key),
                         .certificate_since = std::move(step.certificate_since),
                         .restart_trigger = std::move(step.restart_trigger),
                         .watchers = what_.watchers,
                         .managers = std::move(in_file)});
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].wanted = std::move(objects[i]);
  return {};
}

/// Pods without a certificate would only fail; those that run keep theirs. And webhooks that nobody
/// serves would only keep writes waiting, and the first certificate from being served at once.
void visit::implementation::leave_what_needs_a_certificate() {
  find("Secret", secret_name).leave = true;
  auto& deployment = find("Deployment", skr_webhook_name);
  deployment.leave = !deployment.present.has_value();
  auto& configuration = find("ValidatingWebhookConfiguration", skr_webhook_name);
  configuration.leave = !configuration.present.has_value();
}

bool visit::implementation::differs(const part& one) const {
  if (!one.present) return true;
  if (k8s::find_difference(one.wanted, *one.present)) return true;
  return is(one.wanted, "ValidatingWebhookConfiguration", skr_webhook_name) &&
         !unwanted_webhooks(one.wanted, *one.present).empty();
}

/// Clusters have it long before; new ones may not.
asio::awaitable<k8s::result<void>> visit::implementation::ensure_namespace() {
  if (namespace_there_) co_return k8s::result<void>();
  json::value object = {
      {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", skr_namespace}}}};
  ++out_.writes;
  const auto made = co_await api_->create(namespaces_type(), std::move(object));
  if (made || made.error().is(k8s::errc::already_exists)) co_return k8s::result<void>();
  co_return made.error();
}

asio::awaitable<k8s::result<void>> visit::implementation::write_rank(std::vector<part*> some) {
  std::vector<asio::awaitable<answer>> work;
  for (const auto* each : some) {
    k8s::apply_options options{.field_manager = how_.field_manager, .force = true};
    work.push_back(api_->apply(type_of(each->wanted), each->wanted, std::move(options)));
  }
  out_.writes += some.size();
  auto answers = co_await core::gather(std::move(work));
  for (std::size_t i = 0; i < some.size(); ++i) {
    auto& got = answers[i];
    if (!got) co_return got.error();
    some[i]->present = std::move(*got);
  }
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> visit::implementation::write() {
  std::vector<part*> some;
  for (auto& one : parts_) {
    if (!one.leave && differs(one)) some.push_back(&one);
  }
  if (some.empty()) co_return k8s::result<void>();
  const auto made = co_await ensure_namespace();
  if (!made) co_return made.error();
  for (auto begin = some.begin(); begin != some.end();) {
    const auto rank = rank_of((*begin)->wanted);
    const auto end = std::find_if(begin, some.end(),
                                  [&](const part* one) { return rank_of(one->wanted) != rank; });
    std::vector<part*> of_one_rank(begin, end);
    const auto done = co_await write_rank(std::move(of_one_rank));
    if (!done) co_return done.error();
    begin = end;
  }
  co_return k8s::result<void>();
}

/// Apply leaves webhooks in place that somebody else wrote as well, by kubectl for instance.
asio::awaitable<k8s::result<void>> visit::implementation::drop_unwanted_webhooks() {
  auto& one = find("ValidatingWebhookConfiguration", skr_webhook_name);
  if (!one.present) co_return k8s::result<void>();
  const auto names = unwanted_webhooks(one.wanted, *one.present);
  if (names.empty()) co_return k8s::result<void>();
  auto object = *one.present;
  auto& webhooks = object.as_object()["webhooks"].as_array();
  json::array kept;
  for (auto& webhook : webhooks) {
    const auto name = find_string(webhook, {"name"});
    if (std::ranges::find(names, name) == names.end()) kept.push_back(webhook);
  }
  webhooks = std::move(kept);
  ++out_.writes;
  k8s::write_options options{.field_manager = how_.field_manager};
  auto done = co_await api_->update(webhooks_type, std::move(object), std::move(options));
  if (!done) co_return done.error();
  one.present = std::move(*done);
  co_return k8s::result<void>();
}

/// Webhooks of managers that are not in the file would lose their events, so it comes last.
asio::awaitable<k8s::result<void>> visit::implementation::narrow_managers() {
  auto& secret = find("Secret", secret_name);
  const auto text = render_managers(managers_);
  const bool narrow = k8s::secret_data(secret.wanted, managers_entry) == text;
  if (secret.leave || narrow) co_return k8s::result<void>();
  k8s::set_secret_data(secret.wanted, managers_entry, text);
  std::vector<part*> only{&secret};
  auto done = co_await write_rank(std::move(only));
  co_return done;
}

asio::awaitable<k8s::result<void>> visit::implementation::look_at_pods() {
  const auto* deployment = present("Deployment", skr_webhook_name);
  if (deployment == nullptr) {
    out_.not_ready = "NoCertificate";
    out_.details = out_.pending;
    co_return k8s::result<void>();
  }
  out_.ready = has_ready_pod(*deployment);
  out_.rolled_out = is_rolled_out(*deployment);
  // A Deployment does not count pods that are ending.
  const bool may_have_former = out_.rolled_out && in_retirement(present_now(), how_.delays, now_);
  if (out_.ready && !may_have_former) co_return k8s::result<void>();
  k8s::selection what{.ns = std::string(skr_namespace),
                      .labels = "app=" + std::string(skr_webhook_name)};
  // Those that have ended stay listed, as many as there are; they send nothing any more.
  if (may_have_former) what.fields = "status.phase!=Failed,status.phase!=Succeeded";
  const auto list = co_await api_->list(pods, std::move(what), {.limit = 100});
  if (!list) co_return list.error();
  const bool more = !k8s::find_string(*list, {"metadata", "continue"}).empty();
  if (may_have_former && (more || has_former_pods(*deployment, *list))) out_.rolled_out = false;
  if (out_.ready) co_return k8s::result<void>();
  auto why = waiting_of(*list);
  out_.not_ready = std::move(why.reason);
  out_.details = std::move(why.message);
  co_return k8s::result<void>();
}

void visit::implementation::conclude() {
  for (const auto& one : parts_) {
    if (!is_essential(one.wanted)) continue;
    const auto key = k8s::key_of(one.wanted);
    // By name: the label of what Kyma manages stands on many objects of a runtime.
    out_.left.add(type_of(one.wanted), key,
                  one.present ? k8s::resource_version_of(*one.present) : std::string(),
                  {.ns = key.ns, .fields = "metadata.name=" + key.name});
  }
  const auto now = present_now();
  out_.webhook_bundle = webhook_bundle_of(now);
  out_.secret_bundle = secret_bundle_of(now);
  if (now.secret == nullptr) return;
  out_.certificate = k8s::secret_data(*now.secret, "tls.crt").value_or(std::string());
}

asio::awaitable<k8s::result<outcome>> visit::implementation::bring(
    order what, std::chrono::system_clock::time_point now) {
  what_ = std::move(what);
  now_ = now;
  auto done = decide();
  if (!done) co_return done.error();
  done = co_await write();
  if (!done) co_return done.error();
  done = co_await drop_unwanted_webhooks();
  if (!done) co_return done.error();
  done = co_await narrow_managers();
  if (!done) co_return done.error();
  done = co_await look_at_pods();
  if (!done) co_return done.error();
  conclude();
  co_return std::move(out_);
}

visit::visit(std::shared_ptr<k8s::client> api, const method& how, known_bundles& known)
    : impl_(std::make_unique<implementation>(std::move(api), how, known)) {}
visit::~visit() = default;

asio::awaitable<k8s::result<void>> visit::read() {
  return impl_->read();
}

asio::awaitable<k8s::result<outcome>> visit::bring(order what,
                                                   std::chrono::system_clock::time_point now) {
  return impl_->bring(std::move(what), now);
}

std::vector<std::string> unwanted_webhooks(const json::value& wanted, const json::value& present) {
  const auto names = [](const json::value& of) {
    std::set<std::string> out;
    const auto* webhooks = k8s::find(of, {"webhooks"});
    if (webhooks == nullptr || !webhooks->is_array()) return out;
    for (const auto& one : webhooks->get_array()) out.emplace(find_string(one, {"name"}));
    return out;
  };
  const auto keep = names(wanted);
  std::vector<std::string> out;
  for (const auto& name : names(present)) {
    if (name.ends_with(webhook_suffix) && !keep.contains(name)) out.push_back(name);
  }
  return out;
}

asio::awaitable<k8s::result<void>> uninstall(std::shared_ptr<k8s::client> api, const method* how) {
  const auto& objects = how->manifests.objects();
  for (auto end = objects.rbegin(); end != objects.rend();) {
    const auto begin = end;
    std::vector<asio::awaitable<answer>> work;
    for (; end != objects.rend() && rank_of(*end) == rank_of(*begin); ++end) {
      work.push_back(api->remove(type_of(*end), k8s::key_of(*end)));
    }
    const auto answers = co_await core::gather(std::move(work));
    for (const auto& got : answers) {
      if (!got && !got.error().is(k8s::errc::not_found)) co_return got.error();
    }
  }
  co_return k8s::result<void>();
}

}  // namespace rw::watcher_installer
