// How a set comes into place on a runtime: record, writes, record; or the former one again.

#include "k8s/client_pool.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/manifest_set.hpp"
#include "reactors/bootstrapper/visit.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::find_string;
using phase = sync_record::phase;
using done = k8s::result<void>;

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

/// What a set takes over of others belongs to the way back: the former set is kept anew, with these
/// objects as they are now. At the first time it is nothing else.
visit::work<void> visit::keep_what_was_there(const known_set& set) {
  known_set former;
  for (const auto i : taken_over(set)) {
    former.items.push_back({set.items[i].from, without_server_fields(live_[i]), set.items[i].type});
  }
  if (former.items.empty()) co_return done();
  if (!record_.good.empty()) {
    auto good = co_await store_.load(record_.good, record_.good_parts);
    if (!good) co_return good.error();
    // Then there is no way back; what was there is not removed all the same.
    if (!*good) co_return done();
    former.version = std::move((*good)->version);
    std::ranges::move((*good)->items, std::back_inserter(former.items));
  }
  former.digest = digest_of(former.items);
  const auto parts = co_await store_.keep(former);
  if (!parts) co_return parts.error();
  record_.good = former.digest;
  record_.good_parts = *parts;
  co_return done();
}

/// The items that the runtime has and that are not known as ours.
std::vector<std::size_t> visit::taken_over(const known_set& set) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < set.items.size(); ++i) {
    const auto& one = set.items[i];
    if (!live_[i].is_null() && record_.find(one.type, one.key(what_.to.ns)) == nullptr) {
      out.push_back(i);
    }
  }
  return out;
}

visit::work<void> visit::begin(const known_set& set) {
  auto ready = co_await ensure_namespaces();
  if (!ready) co_return ready.error();
  const auto before = record_;
  ready = co_await keep_what_was_there(set);
  if (!ready) co_return ready.error();
  const auto parts = co_await store_.keep(set);
  if (!parts) co_return parts.error();
  auto next = begin_record(record_, set, *parts, what_.to.ns, what_.now);
  for (const auto i : taken_over(set)) {
    next.find(set.items[i].type, set.items[i].key(what_.to.ns))->was_there = true;
  }
  if (next != before) {
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
  const bool first_time = record_.now == phase::applying && record_.target == set.digest;
  std::size_t written_since = 0;
  for (const auto& one : plan.writes) {
    const auto& item = set.items[one.item];
    const auto written = co_await writer_.apply(item.type, item.written(what_.to.ns));
    if (!written) co_return written.error();
    ++out_.objects;
    live_[one.item] = *written;
    out_.versions.emplace_back(k8s::resource_version_of(*written));
    const auto taken = co_await take_over(item, *written);
    if (!taken) co_return taken.error();
    if (!first_time) continue;
    // Whoever goes on after a crash, or where the time was not enough, begins behind these.
    record_.find(item.type, item.key(what_.to.ns))->digest = digest_of(item.object);
    if (++written_since < how_.writes_between_records) continue;
    written_since = 0;
    const auto told = co_await store_.write(record_);
    if (!told) co_return told.error();
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

/// Removes the sets that are not needed any more. No set fails by that: what is left is noted, and
/// removed at the next look.
asio::awaitable<void> visit::clean_up() {
  const auto cleaned = co_await store_.drop_others(record_.good);
  if (cleaned.has_value() != record_.leftovers) co_return;  // as it stands there
  auto next = record_;
  next.leftovers = !cleaned.has_value();
  const auto told = co_await store_.write(next);
  if (told) record_ = std::move(next);
}

visit::work<void> visit::settle(const known_set& set) {
  auto next = settled_record(set, record_.target_parts, what_.to.ns, what_.now);
  // Another one may have been refused, and this is what stays.
  if (record_.refused && record_.refused->digest != set.digest) next.refused = record_.refused;
  const auto written = co_await store_.write(next);
  if (!written) co_return written.error();
  record_ = std::move(next);
  out_.half_way = false;
  co_await clean_up();
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
  if (!step && is_lasting(step.error())) co_return refused(step.error().message);
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

  // One that was begun has passed.
  const bool begun = record_.now == phase::applying && record_.target == set.digest;
  if (!begun) {
    auto objection = co_await try_dry(set, plan);
    if (!objection) co_return objection.error();
    if (!objection->empty()) co_return refused(std::move(*objection));
  }
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
  // It is the former set itself.
  if (set.digest == record_.good) co_return refused(why);
  step = co_await go_back(set.digest, why);
  if (!step) co_return step.error();
  co_return refused(why);
}

/// Rolls back. Where that can't be, for a reason that does not pass, what the runtime has stays
/// known as ours, and the next set that it takes comes into place.
visit::work<void> visit::go_back(std::string digest, std::string why) {
  auto back = co_await roll_back(std::move(digest), std::move(why));
  if (back || !is_lasting(back.error())) co_return back;
  no_way_back_ = "the former set can't be put back: " + back.error().message;
  auto next = record_;
  next.now = phase::applying;
  next.since = what_.now;
  next.target.clear();
  next.target_parts = 0;
  const auto told = co_await store_.write(next);
  if (!told) co_return told.error();
  record_ = std::move(next);
  co_return done();
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
      co_return k8s::failure{.code = k8s::errc::invalid,
                             .message = "the former set " + short_digest(record_.good) +
                                        " is not on the runtime any more, so it can't be put back"};
    }
    former = std::move(**loaded);
  }
  // Its resources are found anew: the digest is of the objects alone.
  auto step = co_await resolve(former);
  if (!step) co_return step.error();
  sort_for_apply(former, false);
  step = co_await read_live(former);
  if (!step) co_return step.error();
  const auto plan = make_plan(former, record_, live_, what_.to.ns);
  step = co_await write(former, plan);
  if (step) step = co_await prune(plan.prune);
  if (!step) co_return step.error();
  auto next = settled_record(former, record_.good_parts, what_.to.ns, what_.now);
  next.refused = record_.refused;
  for (auto& one : next.inventory) {
    const auto* const known = record_.find(one.type, one.key);
    one.was_there = known != nullptr && known->was_there;
  }
  step = co_await store_.write(next);
  if (!step) co_return step.error();
  record_ = std::move(next);
  out_.rolled_back = true;
  out_.half_way = false;
  co_await clean_up();
  co_return done();
}

}  // namespace rw::bootstrapper
