#include "reactors/bootstrapper/revision_source.hpp"

#include "k8s/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::object_key;

std::size_t index_of(source_kind kind) {
  return static_cast<std::size_t>(kind);
}

/// All that a revision depends on beside the contents. Of the time only the hour: certificates
/// expire.
json::array base_key(unit of, const resource_view& view,
                     std::chrono::system_clock::time_point now) {
  return {to_string(of),
          view.manifests_key,
          view.inline_manifests,
          view.remove_with_source,
          view.to.ns,
          view.to.configuration,
          view.to.pull_secret,
          view.to.trust_bundle,
          std::chrono::floor<std::chrono::hours>(now).time_since_epoch().count()};
}

using stored_contents = std::array<last_good::contents, all_source_kinds.size()>;
/// Of each source: 0 for the newest of its stored contents, 1 for the one before.
using content_ages = std::array<std::size_t, all_source_kinds.size()>;

/// All combinations, the newest first. Sources change at different times: what a runtime has may be
/// the newest of one and the former of another.
std::vector<content_ages> ages_of(const stored_contents& stored) {
  std::vector<content_ages> out(1);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const auto before = stored[i].size() > 1 ? out.size() : 0;
    for (std::size_t each = 0; each < before; ++each) {
      auto older = out[each];
      older[i] = 1;
      out.push_back(older);
    }
  }
  std::ranges::sort(out, {}, [](const content_ages& ages) {
    return std::pair(std::accumulate(ages.begin(), ages.end(), std::size_t{0}), ages);
  });
  return out;
}

}  // namespace

revision_source::revision_source(const sources& from, last_good& stored, core::metrics& registry)
    : from_(from),
      stored_(stored),
      rendered_(core::make_counter(registry, "rw_bootstrapper_gathered_total",
                                   "Number of revisions rendered and validated")) {}

revision_source::located revision_source::locate(const resource_view& view) const {
  located out;
  const auto find = [&](source_kind kind, const char* type, const k8s::informer* in,
                        const std::string& name, const std::string& ns) {
    if (name.empty()) return;
    out[index_of(kind)] = {std::string(type) + " " + to_string(object_key{ns, name}),
                           in == nullptr ? k8s::object() : in->objects().get(ns, name), in};
  };
  const auto& ns = view.key.ns;
  find(source_kind::pull_secret, "Secret", &from_.secrets, view.pull_secret, ns);
  find(source_kind::trust_bundle, "ClusterTrustBundle", from_.trust_bundles, view.trust_bundle, {});
  find(source_kind::configuration, "ConfigMap", &from_.config_maps, view.configuration, ns);
  find(source_kind::manifests, "ConfigMap", &from_.config_maps, view.manifests, ns);
  return out;
}

template <class Objects>
revision_ptr revision_source::render_once(unit of, std::string key, const render_input& like,
                                          Objects objects,
                                          std::chrono::system_clock::time_point now) {
  auto& cached = cache_.use(key);
  if (cached) return cached;
  auto input = like;
  for (const auto kind : all_source_kinds) input.at(kind).object = objects(kind);
  rendered_.Increment();
  cached = std::make_shared<const revision>(render(of, input, now));
  return cached;
}

asio::awaitable<k8s::result<resolved_unit>> revision_source::resolve_unit(
    unit of, const resource_view* view, const located* live,
    std::chrono::system_clock::time_point now) {
  resolved_unit out;
  render_input input{.to = view->to,
                     .manifests_key = view->manifests_key,
                     .inline_manifests = view->inline_manifests,
                     .remove_missing = view->remove_with_source};
  auto key = base_key(of, *view, now);
  stored_contents stored;
  for (const auto kind : all_source_kinds) {
    const auto& source = (*live)[index_of(kind)];
    const auto& name = source.name;
    // Manifests give way to the other targets; only their presence counts for that.
    input.at(kind).name = name;
    key.push_back(json::string(name));
    if (name.empty() || unit_of(kind) != of) continue;
    auto loaded = co_await stored_.load(name);
    if (!loaded && !is_permanent(loaded.error())) co_return loaded.error();
    if (loaded)
      stored[index_of(kind)] = std::move(*loaded);
    else
      out.status.warnings.push_back("the last good content can't be read: " +
                                    loaded.error().message);
    const auto& contents = stored[index_of(kind)];
    if (source.object) {
      key.push_back({source.object.uid(), source.object.resource_version()});
      out.contents.push_back(source);
    } else if (!contents.empty() && !view->remove_with_source) {
      key.push_back(json::string(contents.front()->digest));
    }
  }
  const auto stored_at = [&](source_kind kind, std::size_t age) -> json::value {
    const auto& contents = stored[index_of(kind)];
    return contents.empty() ? json::value() : contents[age]->value;
  };
  const auto desired = render_once(
      of, json::serialize(key), input,
      [&](source_kind kind) {
        const auto& object = (*live)[index_of(kind)].object;
        if (object) return object.parse();
        return unit_of(kind) != of || view->remove_with_source ? json::value() : stored_at(kind, 0);
      },
      now);
  for (const auto& each : desired->found.warnings) out.status.warnings.push_back(each.message());
  if (desired->valid()) {
    out.status.desired = desired->digest;
    out.revisions.push_back(desired);
  } else {
    out.status.invalid = describe(desired->found.errors);
  }
  if (!desired->valid()) out.contents.clear();
  if (std::ranges::all_of(stored, [](const auto& each) { return each.empty(); })) co_return out;
  for (const auto& ages : ages_of(stored)) {
    auto stored_key = base_key(of, *view, now);
    for (const auto kind : all_source_kinds) {
      stored_key.push_back(json::string((*live)[index_of(kind)].name));
      const auto& contents = stored[index_of(kind)];
      if (contents.empty()) continue;
      stored_key.push_back(json::string("stored " + contents[ages[index_of(kind)]]->digest));
    }
    const auto fallback = render_once(
        of, json::serialize(stored_key), input,
        [&](source_kind kind) { return stored_at(kind, ages[index_of(kind)]); }, now);
    const bool known = std::ranges::any_of(
        out.revisions, [&](const revision_ptr& each) { return each->digest == fallback->digest; });
    if (fallback->valid() && !known) out.revisions.push_back(fallback);
  }
  co_return out;
}

asio::awaitable<k8s::result<resolved_units>> revision_source::resolve(
    resource_view view, std::chrono::system_clock::time_point now) {
  const auto live = locate(view);
  resolved_units out;
  for (const auto of : all_units) {
    auto resolved = co_await resolve_unit(of, &view, &live, now);
    if (!resolved) co_return resolved.error();
    out[static_cast<std::size_t>(of)] = std::move(*resolved);
  }
  co_return out;
}

revision_ptr revision_source::render_contents(const resource_view& view,
                                              const json::value& contents,
                                              std::chrono::system_clock::time_point now) {
  if (!contents.is_object()) return {};
  const auto live = locate(view);
  render_input input{.to = view.to, .manifests_key = view.manifests_key};
  auto key = base_key(unit::bootstrapper, view, now);
  for (const auto kind : all_source_kinds) {
    input.at(kind).name = live[index_of(kind)].name;
    key.push_back(json::string(input.at(kind).name));
  }
  key.push_back(json::string("given " + digest_of(contents)));
  const auto rendered = render_once(
      unit::bootstrapper, json::serialize(key), input,
      [&](source_kind kind) {
        const auto* const found = k8s::find(contents, {to_string(kind)});
        return found == nullptr || input.at(kind).name.empty() ? json::value() : *found;
      },
      now);
  return rendered->valid() ? rendered : revision_ptr();
}

asio::awaitable<k8s::result<void>> revision_source::store(const resolved_unit* unit,
                                                          bool absent_only) {
  for (const auto& each : unit->contents) {
    if (stored_objects_[each.name] == each.object) continue;
    const auto loaded = co_await stored_.load(each.name);
    if (!loaded) co_return loaded.error();
    const auto now = each.in->objects().get(each.object.ns(), each.object.name());
    if ((absent_only && !loaded->empty()) || now != each.object) continue;
    const auto stored = co_await stored_.store(each.name, content_of(each.object.parse()));
    if (!stored) co_return stored.error();
    stored_objects_[each.name] = each.object;
  }
  co_return k8s::result<void>();
}

}  // namespace rw::bootstrapper
