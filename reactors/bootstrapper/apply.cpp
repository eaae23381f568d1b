// How a set comes into place on a runtime: dry run, record, writes, record.

#include "core/task_group.hpp"
#include "k8s/client_pool.hpp"
#include "k8s/manifests.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/manifest_set.hpp"
#include "reactors/bootstrapper/visit.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::find_string;
using phase = sync_record::phase;
using done = k8s::result<void>;

using answer = k8s::result<json::value>;

asio::awaitable<void> get_into(k8s::client* api, k8s::resource_type type, k8s::object_key key,
                               std::optional<answer>* into) {
  auto got = co_await api->get(std::move(type), std::move(key));
  into->emplace(std::move(got));
}

/// A lasting failure, told as a value.
k8s::failure refusal(std::string text) {
  return {.code = k8s::errc::invalid, .message = std::move(text)};
}

/// The resource that a definition in the set will serve: it may not be there yet.
std::optional<k8s::resource_type> defined_in(const known_set& set, const json::value& object) {
  k8s::resource_type out;
  if (!k8s::parse_api_version(find_string(object, {"apiVersion"}), out.gvk)) return {};
  out.gvk.kind = find_string(object, {"kind"});
  for (const auto& one : set.items) {
    const auto& definition = one.object;
    if (find_string(definition, {"kind"}) != "CustomResourceDefinition" ||
        find_string(definition, {"spec", "group"}) != out.gvk.group ||
        find_string(definition, {"spec", "names", "kind"}) != out.gvk.kind) {
      continue;
    }
    out.plural = find_string(definition, {"spec", "names", "plural"});
    out.namespaced = find_string(definition, {"spec", "scope"}) == "Namespaced";
    return out;
  }
  return {};
}

bool is_managed_by(const json::value& object, std::string_view manager) {
  const auto* const all = k8s::find(object, {"metadata", "managedFields"});
  if (all == nullptr || !all->is_array()) return false;
  return std::ranges::any_of(all->get_array(), [&](const json::value& one) {
    return find_string(one, {"manager"}) == manager;
  });
}

}  // namespace

bool is_lasting(const k8s::failure& why) noexcept {
  // What does not fit the schema is refused with 500 by server-side apply, up to the newest version
  // (k8s.io/apimachinery/pkg/util/managedfields, structuredmerge.go).
  const bool unfit = why.status == 500 &&
                     why.message.find("failed to create typed patch object") != std::string::npos;
  return unfit || why.is(k8s::errc::bad_request) || why.is(k8s::errc::invalid) ||
         why.is(k8s::errc::forbidden) || why.is(k8s::errc::unsupported) ||
         why.is(k8s::errc::method_not_allowed) || why.is(k8s::errc::too_large) || why.status == 413;
}

// --- what there is ---------------------------------------------------------------------

visit::work<std::optional<k8s::resource_type>> visit::trust_bundle_resource(
    const json::value& object) {
  k8s::group_version_kind gvk;
  k8s::parse_api_version(find_string(object, {"apiVersion"}), gvk);
  gvk.kind = find_string(object, {"kind"});
  auto versions = co_await writer_.api().versions(gvk.group);
  if (!versions) co_return versions.error();
  // The control plane's own first: what it says is known to fit that.
  const auto own = std::ranges::find(*versions, gvk.version);
  if (own != versions->end()) std::rotate(versions->begin(), own, own + 1);
  for (const auto& one : *versions) {
    gvk.version = one;
    const auto found = co_await writer_.api().find(gvk);
    if (found) co_return std::optional(*found);
    if (!found.error().is(k8s::errc::not_found)) co_return found.error();
  }
  co_return std::optional<k8s::resource_type>();
}

/// None: the runtime does not serve it.
visit::work<std::optional<k8s::resource_type>> visit::resource_of(const json::value& object) {
  const auto version = find_string(object, {"apiVersion"});
  const auto kind = find_string(object, {"kind"});
  if (auto known = k8s::well_known_type(version, kind)) co_return known;
  if (kind == "ClusterTrustBundle" && version.starts_with("certificates.k8s.io/")) {
    auto bundle = co_await trust_bundle_resource(object);
    co_return bundle;
  }
  k8s::group_version_kind gvk;
  if (!k8s::parse_api_version(version, gvk)) co_return std::optional<k8s::resource_type>();
  gvk.kind = kind;
  const auto found = co_await writer_.api().find(std::move(gvk));
  if (found) co_return std::optional(*found);
  if (found.error().is(k8s::errc::not_found)) co_return std::optional<k8s::resource_type>();
  co_return found.error();
}

visit::work<void> visit::resolve(known_set& set) {
  for (auto& one : set.items) {
    auto type = co_await resource_of(one.object);
    if (!type) co_return type.error();
    if (!*type) *type = defined_in(set, one.object);
    if (!*type) {
      co_return refusal("the runtime does not know the kind " +
                        std::string(find_string(one.object, {"kind"})) + " of " +
                        std::string(find_string(one.object, {"apiVersion"})) + " (" +
                        k8s::key_of(one.object).name + ")");
    }
    one.type = std::move(**type);
  }
  co_return done();
}

visit::work<void> visit::read_live(const known_set& set) {
  const auto executor = co_await asio::this_coro::executor;
  const auto count = set.items.size();
  std::vector<std::optional<answer>> answers(count);
  for (std::size_t begin = 0; begin < count; begin += how_.reads_at_once) {
    core::task_group tasks(executor);
    for (auto i = begin; i < std::min(count, begin + how_.reads_at_once); ++i) {
      const auto& item = set.items[i];
      tasks.spawn(get_into(&writer_.api(), item.type, item.key(what_.to.ns), &answers[i]));
    }
    co_await tasks.join();
  }
  live_.assign(count, nullptr);
  for (std::size_t i = 0; i < count; ++i) {
    auto& got = *answers[i];
    const bool missing = got.has_error() && got.error().is(k8s::errc::not_found);
    if (got.has_error() && !missing) co_return got.error();
    if (!missing) live_[i] = std::move(*got);
  }
  co_return done();
}

void visit::note(const known_set& set, const sync_plan& plan) {
  for (const auto& one : plan.writes) {
    const auto& item = set.items[one.item];
    const auto who = describe(item.type, item.key(what_.to.ns));
    if (one.missing) out_.differences.push_back(who + " is missing");
    if (!one.difference.empty()) out_.differences.push_back(who + ": " + one.difference);
  }
  for (const auto& one : plan.prune) {
    out_.differences.push_back(describe(one.type, one.key) + " is not wanted any more");
  }
}

// --- without a trace -------------------------------------------------------------------

/// Why the runtime would refuse the plan; empty if it would not, as far as it can tell. What comes
/// into a namespace that is not there yet is tried in one that is; what is of a kind that is not
/// there yet can't be tried.
visit::work<std::string> visit::try_dry(const known_set& set, const sync_plan& plan) {
  for (const auto& one : plan.writes) {
    const auto& item = set.items[one.item];
    auto object = item.written(what_.to.ns);
    const auto who = describe(item.type, item.key(what_.to.ns));
    bool moved = false;
    if (item.type.namespaced && one.missing) {
      const auto ns = item.key(what_.to.ns).ns;
      const auto there = co_await writer_.api().get(namespaces_type(), {{}, ns}, true);
      if (!there && !there.error().is(k8s::errc::not_found)) co_return there.error();
      moved = !there;
      if (moved) object.as_object()["metadata"].as_object()["namespace"] = "default";
    }
    const auto tried = co_await writer_.dry_run(item.type, std::move(object));
    if (tried) continue;
    const auto& why = tried.error();
    if (why.is(k8s::errc::not_found) && defined_in(set, item.object)) continue;
    if (is_lasting(why)) co_return "the runtime would not take " + who + ": " + why.message;
    co_return why;
  }
  co_return std::string();
}

// --- the writes ------------------------------------------------------------------------

/// Those that the record and the targets need; clusters have them long before, new ones may not.
visit::work<void> visit::ensure_namespaces() {
  std::vector<std::string> names{how_.record_namespace};
  if (what_.to.ns != names.front()) names.push_back(what_.to.ns);
  for (const auto& one : names) {
    const auto there = co_await writer_.api().get(namespaces_type(), {{}, one}, true);
    if (there) continue;
    if (!there.error().is(k8s::errc::not_found)) co_return there.error();
    json::value object{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", one}}}};
    const auto made = co_await writer_.apply(namespaces_type(), std::move(object));
    if (!made) co_return made.error();
  }
  co_return done();
}

/// At the first time the former set is what the runtime has under the names of the new one.
visit::work<void> visit::keep_what_was_there(const known_set& set) {
  known_set former;
  for (std::size_t i = 0; i < set.items.size(); ++i) {
    if (live_[i].is_null()) continue;
    former.items.push_back({set.items[i].from, without_server_fields(live_[i]), set.items[i].type});
  }
  if (former.items.empty()) co_return done();
  former.digest = digest_of(former.items);
  const auto parts = co_await store_.keep(former);
  if (!parts) co_return parts.error();
  record_.good = former.digest;
  record_.good_parts = *parts;
  co_return done();
}

visit::work<void> visit::begin(const known_set& set) {
  auto ready = co_await ensure_namespaces();
  if (!ready) co_return ready.error();
  if (!has_record_) {
    ready = co_await keep_what_was_there(set);
    if (!ready) co_return ready.error();
  }
  const auto parts = co_await store_.keep(set);
  if (!parts) co_return parts.error();
  auto next = begin_record(record_, set, *parts, what_.to.ns, what_.now);
  if (next != record_) {
    const auto written = co_await store_.write(next);
    if (!written) co_return written.error();
  }
  record_ = std::move(next);
  has_record_ = true;
  out_.half_way = true;
  co_return done();
}

/// Makes fields ours alone that a former manager owns as well.
visit::work<void> visit::take_over(const set_item& item, const json::value& written) {
  const auto* const all = k8s::find(written, {"metadata", "managedFields"});
  if (all == nullptr || !all->is_array()) co_return done();
  json::array changes;
  changes.push_back({{"op", "test"},
                     {"path", "/metadata/resourceVersion"},
                     {"value", k8s::resource_version_of(written)}});
  const auto& entries = all->get_array();
  for (auto i = entries.size(); i-- > 0;) {  // from the end, so that places stay what they are
    const auto manager = find_string(entries[i], {"manager"});
    const bool former =
        std::ranges::find(how_.former_managers, manager) != how_.former_managers.end() &&
        manager != how_.field_manager && find_string(entries[i], {"subresource"}).empty();
    if (!former) continue;
    changes.push_back({{"op", "remove"}, {"path", "/metadata/managedFields/" + std::to_string(i)}});
  }
  if (changes.size() == 1) co_return done();
  const auto patched = co_await writer_.patch(item.type, item.key(what_.to.ns), std::move(changes));
  // Somebody was faster. Then the former manager stays an owner as well, which does no harm now.
  const bool lost = !patched && (patched.error().is(k8s::errc::conflict) ||
                                 patched.error().is(k8s::errc::invalid) ||
                                 patched.error().is(k8s::errc::not_found));
  if (!patched && !lost) co_return patched.error();
  if (patched) out_.versions.emplace_back(k8s::resource_version_of(*patched));
  co_return done();
}

visit::work<void> visit::write(const known_set& set, const sync_plan& plan) {
  for (const auto& one : plan.writes) {
    const auto& item = set.items[one.item];
    const auto written = co_await writer_.apply(item.type, item.written(what_.to.ns));
    if (!written) co_return written.error();
    ++out_.objects;
    live_[one.item] = *written;
    out_.versions.emplace_back(k8s::resource_version_of(*written));
    const auto taken = co_await take_over(item, *written);
    if (!taken) co_return taken.error();
  }
  co_return done();
}

visit::work<void> visit::prune(std::vector<inventory_item> items) {
  const auto before = writer_.writes();
  const auto removed = co_await remove_ours(&writer_, std::move(items));
  out_.objects += writer_.writes() - before;
  if (!removed) co_return removed.error();
  co_return done();
}

asio::awaitable<k8s::result<void>> remove_ours(writer* with, std::vector<inventory_item> items) {
  for (const auto& one : items) {
    const auto got = co_await with->api().get(one.type, one.key);
    if (!got && got.error().is(k8s::errc::not_found)) continue;
    if (!got) co_return got.error();
    // Somebody else has made it anew since.
    if (!is_managed_by(*got, with->field_manager())) continue;
    const auto removed = co_await with->remove(one.type, one.key, std::string(k8s::uid_of(*got)));
    if (!removed) co_return removed.error();
  }
  co_return done();
}

visit::work<void> visit::settle(const known_set& set) {
  auto next = settled_record(set, record_.target_parts, what_.to.ns, what_.now);
  const auto written = co_await store_.write(next);
  if (!written) co_return written.error();
  record_ = std::move(next);
  out_.half_way = false;
  const auto cleaned = co_await store_.drop_others(set.digest);
  if (!cleaned) co_return cleaned.error();
  co_return done();
}

/// The version that runs there does not know all features that the configuration names.
bool visit::needs_new_version(const known_set& set) const {
  const auto deployed = std::ranges::find_if(live_, [this](const json::value& one) {
    return find_string(one, {"kind"}) == "Deployment" &&
           k8s::key_of(one) == k8s::object_key{what_.to.ns, std::string(deployment_name)};
  });
  if (deployed == live_.end()) return false;
  return !unknown_features(objects_of(set), what_.to, features_of(*deployed)).empty();
}

/// True: the set is in place, or would be if this look might write. False: it is refused, and
/// nothing of it is there.
visit::work<bool> visit::make(known_set set) {
  const auto refused = [this](std::string why) {
    out_.refused = std::move(why);
    return false;
  };
  auto step = co_await resolve(set);
  if (!step && is_lasting(step.error())) co_return refused(step.error().message);
  if (!step) co_return step.error();
  sort_for_apply(set, false);
  step = co_await read_live(set);
  if (!step) co_return step.error();
  if (needs_new_version(set)) {
    sort_for_apply(set, true);
    step = co_await read_live(set);
    if (!step) co_return step.error();
  }
  const auto plan = make_plan(set, record_, live_, what_.to.ns);
  note(set, plan);
  const bool in_place = record_.now == phase::settled && record_.good == set.digest && has_record_;
  if (!what_.write || (in_place && plan.empty())) co_return true;

  auto objection = co_await try_dry(set, plan);
  if (!objection) co_return objection.error();
  if (!objection->empty()) co_return refused(std::move(*objection));
  if (!in_place) {
    step = co_await begin(set);
    if (!step && is_lasting(step.error())) co_return refused(step.error().message);
    if (!step) co_return step.error();
  }
  step = co_await write(set, plan);
  if (step) step = co_await prune(plan.prune);
  if (step && !in_place) step = co_await settle(set);
  out_.repaired = step.has_value() && in_place;
  if (step) co_return true;

  const bool too_long = !k8s::is_sick(step.error()) && !step.error().is(k8s::errc::fenced) &&
                        what_.now - record_.since > how_.apply_limit;
  if (in_place || (!is_lasting(step.error()) && !too_long)) co_return step.error();
  const auto why = "the runtime did not take it: " + step.error().message;
  step = co_await roll_back(set.digest, why);
  if (!step) co_return step.error();
  co_return refused(why);
}

/// Puts the former set back in place, or, where there was none, removes what was begun. The
/// refusal stands in the record, so that the same set is not tried again at once.
visit::work<void> visit::roll_back(std::string digest, std::string why) {
  if (record_.now != phase::rolling_back) {
    record_.now = phase::rolling_back;
    record_.since = what_.now;
    record_.refused = {std::move(digest), std::move(why), what_.now};
    const auto told = co_await store_.write(record_);
    if (!told) co_return told.error();
  }
  known_set former;
  if (!record_.good.empty()) {
    auto loaded = co_await store_.load(record_.good, record_.good_parts);
    if (!loaded) co_return loaded.error();
    if (!*loaded) {
      co_return k8s::failure{.code = k8s::errc::bad_answer,
                             .message = "the former set " + short_digest(record_.good) +
                                        " is not on the runtime any more, so it can't be put back"};
    }
    former = std::move(**loaded);
  }
  sort_for_apply(former, false);
  auto step = co_await read_live(former);
  if (!step) co_return step.error();
  const auto plan = make_plan(former, record_, live_, what_.to.ns);
  step = co_await write(former, plan);
  if (step) step = co_await prune(plan.prune);
  if (!step) co_return step.error();
  auto next = settled_record(former, record_.good_parts, what_.to.ns, what_.now);
  next.refused = record_.refused;
  step = co_await store_.write(next);
  if (!step) co_return step.error();
  record_ = std::move(next);
  out_.rolled_back = true;
  out_.half_way = false;
  const auto cleaned = co_await store_.drop_others(record_.good);
  if (!cleaned) co_return cleaned.error();
  co_return done();
}

}  // namespace rw::bootstrapper
