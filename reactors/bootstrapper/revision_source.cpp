#include "reactors/bootstrapper/revision_source.hpp"

#include "k8s/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

std::size_t index_of(source_kind kind) {
  return static_cast<std::size_t>(kind);
}

}  // namespace

revision_source::revision_source(const sources& from, last_good& stored, core::metrics& registry)
    : from_(from),
      stored_(stored),
      rendered_(core::make_counter(registry, "rw_bootstrapper_rendered_total",
                                   "Number of revisions rendered and validated")) {}

revision_source::states revision_source::locate(const resource_view& view) const {
  states out;
  const auto find = [&](source_kind kind, const char* type, const k8s::informer* in,
                        const k8s::object_key& key) {
    if (key.name.empty()) return;
    out[index_of(kind)] = {.name = std::string(type) + " " + to_string(key),
                           .in = in,
                           .live = in == nullptr ? k8s::object() : in->objects().get(key)};
  };
  const auto& ns = view.key.ns;
  find(source_kind::pull_secret, "Secret", &from_.secrets, {ns, view.pull_secret});
  find(source_kind::trust_bundle, "ClusterTrustBundle", &from_.trust_bundles,
       {{}, view.trust_bundle});
  find(source_kind::configuration, "ConfigMap", &from_.config_maps, {ns, view.configuration});
  find(source_kind::manifests, "ConfigMap", &from_.config_maps, {ns, view.manifests});
  return out;
}

revision_ptr revision_source::render_once(unit of, const resource_view& view, const states& from,
                                          const choice& contents,
                                          std::chrono::system_clock::time_point now) {
  // All that a revision depends on; of the time only the hour: certificates expire.
  json::array key{to_string(of),
                  view.manifests_key,
                  view.inline_manifests,
                  view.remove_with_source,
                  view.to.ns,
                  view.to.configuration,
                  view.to.pull_secret,
                  view.to.trust_bundle,
                  std::chrono::floor<std::chrono::hours>(now).time_since_epoch().count()};
  for (std::size_t i = 0; i < from.size(); ++i) {
    key.push_back(json::string(from[i].name));
    if (contents[i] == live) key.push_back({from[i].live.uid(), from[i].live.resource_version()});
    if (contents[i] >= 0) key.push_back(json::string(from[i].stored[contents[i]]->digest));
  }
  auto& cached = cache_.use(json::serialize(key));
  if (cached) return cached;
  render_input input{.to = view.to,
                     .manifests_key = view.manifests_key,
                     .inline_manifests = view.inline_manifests,
                     .remove_missing = view.remove_with_source};
  // What is stored had the label.
  input.labelled_only = view.own_manifests && contents[index_of(source_kind::manifests)] == live;
  for (std::size_t i = 0; i < from.size(); ++i) {
    input.sources[i].name = from[i].name;
    if (contents[i] == live) input.sources[i].object = from[i].live.parse();
    if (contents[i] >= 0) input.sources[i].object = from[i].stored[contents[i]]->value;
  }
  rendered_.Increment();
  cached = std::make_shared<const revision>(render(of, input, now));
  return cached;
}

asio::awaitable<k8s::result<resolved_unit>> revision_source::resolve_unit(
    unit of, const resource_view* view, states from, std::chrono::system_clock::time_point now) {
  resolved_unit out;
  choice desired;
  desired.fill(absent);
  std::vector<choice> fallbacks{desired};
  for (const auto kind : all_source_kinds) {
    const auto i = index_of(kind);
    auto& source = from[i];
    // Manifests give way to the other unit's target; only its presence counts for that.
    if (source.name.empty() || unit_of(kind) != of) continue;
    auto loaded = co_await stored_.load(source.name);
    if (loaded) {
      source.stored = std::move(*loaded);
    } else if (is_permanent(loaded.error())) {
      out.status.warnings.push_back("the last good content can't be read: " +
                                    loaded.error().message);
    } else {
      co_return loaded.error();
    }
    if (source.live) {
      desired[i] = live;
      out.contents.push_back(source);
    } else if (!source.stored.empty() && !view->remove_with_source) {
      desired[i] = 0;
    }
    // Sources change at different times: what a runtime has may be the newest content of one and
    // the previous of another.
    const auto before = fallbacks;
    for (std::size_t age = 0; age < source.stored.size(); ++age) {
      for (std::size_t each = 0; each < before.size(); ++each) {
        auto next = before[each];
        next[i] = static_cast<int>(age);
        if (age == 0) fallbacks[each] = next;
        if (age > 0) fallbacks.push_back(next);
      }
    }
  }
  const auto first = render_once(of, *view, from, desired, now);
  out.status.warnings.insert(out.status.warnings.end(), first->found.warnings.begin(),
                             first->found.warnings.end());
  if (first->valid()) {
    out.status.desired = first->digest;
    out.revisions.push_back(first);
  } else {
    out.status.invalid = describe(first->found.errors);
    out.contents.clear();
  }
  const bool any_stored =
      std::ranges::any_of(from, [](const source_state& each) { return !each.stored.empty(); });
  if (!any_stored) co_return out;
  std::ranges::sort(fallbacks, {}, [](const choice& each) {
    return std::pair(std::accumulate(each.begin(), each.end(), 0), each);
  });
  for (const auto& each : fallbacks) {
    const auto fallback = render_once(of, *view, from, each, now);
    const bool known = std::ranges::any_of(out.revisions, [&](const revision_ptr& other) {
      return other->digest == fallback->digest;
    });
    if (fallback->valid() && !known) out.revisions.push_back(fallback);
  }
  co_return out;
}

asio::awaitable<k8s::result<resolved_units>> revision_source::resolve(
    resource_view view, std::chrono::system_clock::time_point now) {
  resolved_units out;
  for (const auto of : all_units) {
    auto resolved = co_await resolve_unit(of, &view, locate(view), now);
    if (!resolved) co_return resolved.error();
    out[static_cast<std::size_t>(of)] = std::move(*resolved);
  }
  co_return out;
}

revision_ptr revision_source::render_stored(const resource_view& view, const stored_set& contents,
                                            std::chrono::system_clock::time_point now) {
  auto from = locate(view);
  choice given;
  given.fill(absent);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].name.empty() || !contents[i]) continue;
    from[i].stored = {contents[i]};
    given[i] = 0;
  }
  const auto rendered = render_once(unit::bootstrapper, view, from, given, now);
  return rendered->valid() ? rendered : revision_ptr();
}

asio::awaitable<k8s::result<void>> revision_source::store_one(source_state source,
                                                              bool absent_only) {
  const auto loaded = co_await stored_.load(source.name);
  if (!loaded) co_return loaded.error();
  if (!loaded->empty() && stored_objects_[source.name] == source.live) {
    co_return k8s::result<void>();
  }
  const auto now = source.in->objects().get(source.live.key());
  if ((absent_only && !loaded->empty()) || now != source.live) co_return k8s::result<void>();
  const auto stored = co_await stored_.store(source.name, content_of(source.live.parse()));
  if (stored) stored_objects_[source.name] = source.live;
  co_return stored;
}

asio::awaitable<void> revision_source::store(const resolved_unit* unit, bool absent_only,
                                             std::vector<std::string>* warnings) {
  for (const auto& each : unit->contents) {
    const auto stored = co_await store_one(each, absent_only);
    if (stored) continue;
    warnings->push_back("the content of the sources can't be stored to fall back to: " +
                        stored.error().message);
  }
}

}  // namespace rw::bootstrapper
