// What the control plane says of a runtime, and whom a change there concerns.

#include "k8s/types.hpp"
#include "reactors/bootstrapper/direct_sync.hpp"
#include "reactors/kyma_resources.hpp"
#include "reactors/runtime_access.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::delta;
using k8s::object;
using k8s::object_key;

constexpr const char* by_runtime = "runtime-bootstrapper/runtime";
constexpr const char* by_kyma = "runtime-bootstrapper/kyma";
constexpr const char* by_source = "runtime-bootstrapper/source";
constexpr std::string_view kubeconfig_prefix = "kubeconfig-";

/// Adds an index of one value, or none.
template <class Value>
void index(k8s::informer& in, const char* name, Value value) {
  in.add_index(name, [value](const object& one, std::vector<std::string>& values) {
    auto text = value(one.parse());
    if (!text.empty()) values.push_back(std::move(text));
  });
}

/// A source as the index of RuntimeBootstrappers has it.
std::string source_value(part which, std::string_view name) {
  return std::string(to_string(which)) + "/" + std::string(name);
}

std::string kyma_label_of(const json::value& object) {
  return std::string(k8s::label(object, kyma_name_label).value_or(std::string_view()));
}

/// The parts of an object that a source is: its content, but not who labelled it.
std::string content_version(const object& one) {
  if (!one) return {};
  const auto value = one.parse();
  json::object content;
  for (const auto* field : {"data", "binaryData", "type", "spec"}) {
    if (const auto* const found = k8s::find(value, {field})) content[field] = *found;
  }
  return digest_of(json::value(std::move(content)));
}

bool content_changed(const delta& change) {
  return content_version(change.before) != content_version(change.now);
}

/// What is wanted of a runtime may be otherwise now; its status is no news.
bool resource_changed(const delta& change) {
  if (change.what != delta::kind::updated) return true;
  const auto before = change.before.parse();
  const auto now = change.now.parse();
  return k8s::generation_of(before) != k8s::generation_of(now) ||
         k8s::is_being_deleted(before) != k8s::is_being_deleted(now);
}

bool runtime_changed(const delta& change) {
  if (change.what != delta::kind::updated) return true;
  const auto before = change.before.parse();
  const auto now = change.now.parse();
  // A mark that goes: Kyma Infrastructure Manager has written, and there may be no difference left.
  return is_handed_over(before) != is_handed_over(now) ||
         carries_mark(before) != carries_mark(now) || is_suspended(before) != is_suspended(now) ||
         k8s::annotation(before, bootstrapper_mode_annotation) !=
             k8s::annotation(now, bootstrapper_mode_annotation) ||
         kyma_label_of(before) != kyma_label_of(now) ||
         k8s::is_being_deleted(before) != k8s::is_being_deleted(now);
}

k8s::failure no_access(std::string text) {
  return {.code = k8s::errc::not_configured, .message = std::move(text)};
}

}  // namespace

// --- what changes, and whom it concerns ------------------------------------------------

void direct_sync::add_indexes() {
  index(from_.bootstrappers, by_runtime, [](const json::value& one) {
    return std::string(k8s::find_string(one, {"spec", "runtimeRef", "name"}));
  });
  index(from_.bootstrappers, by_kyma, [](const json::value& one) {
    return std::string(k8s::find_string(one, {"spec", "runtimeRef", "kymaName"}));
  });
  from_.bootstrappers.add_index(
      by_source, [usual = with_.usual](const object& one, std::vector<std::string>& values) {
        problems unused;
        const auto view = read_resource(one.parse(), usual, unused);
        const auto add = [&values](part which, const std::string& name) {
          if (!name.empty()) values.push_back(source_value(which, name));
        };
        add(part::configuration, view.configuration);
        add(part::pull_secret, view.pull_secret);
        add(part::trust_bundle, view.trust_bundle);
        add(part::manifests, view.manifests);
      });
  index(from_.runtimes, by_kyma, kyma_label_of);
  index(from_.kubeconfigs, by_kyma, kyma_label_of);
}

void direct_sync::remove_indexes() {
  from_.bootstrappers.remove_index(by_runtime);
  from_.bootstrappers.remove_index(by_source);
  for (auto* const each : {&from_.bootstrappers, &from_.runtimes, &from_.kubeconfigs}) {
    each->remove_index(by_kyma);
  }
}

void direct_sync::watch_all() {
  using keys = k8s::controller::keys;
  const auto add = [this](const char* index_name, std::string_view value, keys& some) {
    for (const auto& one : from_.bootstrappers.objects().by_index(index_name, value)) {
      some.push_back(one.key());
    }
  };
  controller_.watch(from_.bootstrappers, [this](const delta& change, keys& some) {
    if (!resource_changed(change)) return;
    some.push_back(change.any().key());
    // Whose runtime it is may be otherwise now.
    for (const auto& each : {change.before, change.now}) {
      if (!each) continue;
      for (const auto& one : sharers_of(view_of(each))) {
        if (one.name() != each.name() || one.ns() != each.ns()) some.push_back(one.key());
      }
    }
  });
  controller_.watch(from_.runtimes, [this, add](const delta& change, keys& some) {
    if (!runtime_changed(change)) return;
    const auto& runtime = change.any();
    add(by_runtime, runtime.name(), some);
    const auto kyma = kyma_label_of(runtime.parse());
    if (!kyma.empty()) add(by_kyma, kyma, some);
    if (with_.create_for_runtimes && change.now) some.push_back(runtime.key());
  });
  controller_.watch(from_.kubeconfigs, [this, add](const delta& change, keys& some) {
    for (const auto& each : {change.before, change.now}) {
      if (!each) continue;
      auto name = each.name();
      if (name.starts_with(kubeconfig_prefix)) {
        name.remove_prefix(kubeconfig_prefix.size());
        add(by_runtime, name, some);
      }
      const auto kyma = kyma_label_of(each.parse());
      if (kyma.empty()) continue;
      add(by_kyma, kyma, some);
      for (const auto& runtime : from_.runtimes.objects().by_index(by_kyma, kyma)) {
        add(by_runtime, runtime.name(), some);
      }
    }
  });
  controller_.watch(from_.config_maps, [this](const delta& change, keys& some) {
    if (change.any().ns() != kcp_namespace || !content_changed(change)) return;
    auto concerned = who_reads(part::configuration, change.any().name());
    auto others = who_reads(part::manifests, change.any().name());
    concerned.insert(concerned.end(), others.begin(), others.end());
    fan_out(std::move(concerned), some);
  });
  controller_.watch(from_.secrets, [this](const delta& change, keys& some) {
    if (change.any().ns() != kcp_namespace || !content_changed(change)) return;
    fan_out(who_reads(part::pull_secret, change.any().name()), some);
  });
  if (from_.trust_bundles == nullptr) return;
  controller_.watch(*from_.trust_bundles, [this](const delta& change, keys& some) {
    if (content_changed(change)) fan_out(who_reads(part::trust_bundle, change.any().name()), some);
  });
}

std::vector<object_key> direct_sync::who_reads(part which, std::string_view name) const {
  std::vector<object_key> out;
  const auto value = source_value(which, name);
  for (const auto& one : from_.bootstrappers.objects().by_index(by_source, value)) {
    out.push_back(one.key());
  }
  return out;
}

/// Each at a moment of its own, so that neither the runtimes nor this process are flooded.
void direct_sync::fan_out(std::vector<object_key> some, k8s::controller::keys& at_once) {
  const auto now = in_.clock.wall();
  const auto count = static_cast<core::duration::rep>(some.size());
  const auto within = std::min(with_.spread * count, with_.spread_limit);
  for (auto& one : some) {
    if (may_write(one)) progress_.outdated(one, now);
    const auto added = controller_.add_after(one, up_to(within));
    if (added == core::add_result::full) at_once.push_back(std::move(one));  // the source waits
  }
}

core::duration direct_sync::up_to(core::duration most) const {
  const auto range = static_cast<std::uint64_t>(std::max<core::duration::rep>(most.count(), 0)) + 1;
  return core::duration(static_cast<core::duration::rep>(in_.random() % range));
}

// --- one runtime -----------------------------------------------------------------------

resource_view direct_sync::view_of(const object& resource) const {
  problems unused;
  return read_resource(resource.parse(), with_.usual, unused);
}

/// By its name, or else the one Runtime of the Kyma. Empty: there is none.
object direct_sync::runtime_of(const resource_view& view) const {
  const auto& all = from_.runtimes.objects();
  if (!view.runtime.empty()) return all.get(view.key.ns, view.runtime);
  const auto found = all.by_index(by_kyma, view.kyma);
  return found.size() == 1 ? found.front() : object();
}

bootstrapper_mode direct_sync::mode_of(const resource_view& view, const object& runtime) const {
  if (runtime) return rw::mode_of(runtime.parse(), with_.mode);
  // A Runtime that is named and not there may have said otherwise.
  return view.runtime.empty() ? with_.mode : bootstrapper_mode::off;
}

/// Why nothing is to be done on the runtime now; empty: it is ours.
std::string direct_sync::why_waiting(const resource_view& view, const object& runtime) const {
  if (!view.runtime.empty() && !runtime) return "there is no Runtime " + view.runtime;
  const auto mode = mode_of(view, runtime);
  if (mode != bootstrapper_mode::direct && mode != bootstrapper_mode::shadow) {
    return "the runtime's mode is " + std::string(to_string(mode));
  }
  if (view.suspended) return "the spec says suspend";
  if (!runtime || mode == bootstrapper_mode::shadow) return {};
  const auto value = runtime.parse();
  if (is_suspended(value)) return "the Runtime is suspended";
  if (carries_mark(value)) {
    return "Kyma Infrastructure Manager is about to write to the runtime (" +
           std::string(force_reconciliation_mark) + "); it is our turn when that mark is gone";
  }
  if (is_handed_over(value)) return {};
  return "Kyma Infrastructure Manager may still be told to write to the runtime; it is our turn "
         "when its Runtime has the annotation " +
         std::string(signalled_annotation) + "=" + std::string(signalled_nothing);
}

/// As it is at this moment: asked before each write.
bool direct_sync::may_write(const object_key& key) const {
  const auto resource = from_.bootstrappers.objects().get(key);
  if (!resource) return false;
  const auto view = view_of(resource);
  const auto runtime = runtime_of(view);
  return mode_of(view, runtime) == bootstrapper_mode::direct &&
         why_waiting(view, runtime).empty() && mismatch(view, runtime).empty() &&
         !other_owner(view);
}

/// The name of the Kyma whose kubeconfig gives access; empty: it is not known.
std::string direct_sync::kyma_of(const resource_view& view, const object& runtime) const {
  if (!view.kyma.empty() || !runtime) return view.kyma;
  return kyma_label_of(runtime.parse());
}

/// The mode is asked of the Runtime, and the kubeconfig is the Kyma's: they must be of one runtime.
/// Empty: they are.
std::string direct_sync::mismatch(const resource_view& view, const object& runtime) const {
  if (view.runtime.empty() || view.kyma.empty()) return {};
  const auto label = runtime ? kyma_label_of(runtime.parse()) : std::string();
  if (!label.empty() && label != view.kyma) {
    return "Runtime " + view.runtime + " is of Kyma " + label + " and not of " + view.kyma;
  }
  for (const auto& one : from_.runtimes.objects().by_index(by_kyma, view.kyma)) {
    if (one.name() == view.runtime) continue;
    return "Kyma " + view.kyma + " is that of Runtime " + std::string(one.name()) + " and not of " +
           view.runtime;
  }
  return {};
}

/// All that have its runtime, this one too.
std::vector<object> direct_sync::sharers_of(const resource_view& view) const {
  const auto& all = from_.bootstrappers.objects();
  const auto runtime = runtime_of(view);
  const auto name = runtime ? std::string(runtime.name()) : view.runtime;
  const auto kyma = kyma_of(view, runtime);
  auto same = name.empty() ? std::vector<object>() : all.by_index(by_runtime, name);
  if (!kyma.empty()) {
    const auto more = all.by_index(by_kyma, kyma);
    same.insert(same.end(), more.begin(), more.end());
  }
  return same;
}

/// Two of them for one runtime would undo each other: the first in the alphabet has it.
std::optional<std::string> direct_sync::other_owner(const resource_view& view) const {
  for (const auto& one : sharers_of(view)) {
    if (one.ns() == view.key.ns && one.name() < view.key.name) return std::string(one.name());
  }
  return std::nullopt;
}

bool direct_sync::has_access(const resource_view& view, const object& runtime) const {
  const auto kyma = kyma_of(view, runtime);
  const auto& secrets = from_.kubeconfigs.objects();
  if (!kyma.empty() && !secrets.by_index(by_kyma, kyma).empty()) return true;
  const auto name = std::string(kubeconfig_prefix) + view.runtime;
  return !view.runtime.empty() && static_cast<bool>(secrets.get(view.key.ns, name));
}

k8s::result<std::string> direct_sync::access_to(const resource_view& view,
                                                const object& runtime) const {
  const auto kyma = kyma_of(view, runtime);
  const auto& secrets = from_.kubeconfigs.objects();
  if (!kyma.empty()) {
    const auto labelled = secrets.by_index(by_kyma, kyma);
    if (!labelled.empty() || view.runtime.empty()) return kubeconfig_of(kyma, labelled);
  }
  const auto name = std::string(kubeconfig_prefix) + view.runtime;
  const auto secret = secrets.get(view.key.ns, name);
  if (secret) return kubeconfig_in(secret);
  return no_access("neither a Secret with the label " + std::string(kyma_name_label) +
                   " nor the Secret " + name + " gives access to the runtime");
}

}  // namespace rw::bootstrapper
