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

revision_source::revision_source(const sources& from, target_names to, last_good& stored,
                                 core::metrics& registry)
    : from_(from),
      to_(std::move(to)),
      stored_(stored),
      rendered_(core::make_counter(registry, "rw_bootstrapper_rendered_total",
                                   "Number of revisions rendered and validated")) {}

revision_source::states revision_source::locate(const resource_view& view) const {
  states out;
  for (const auto which : all_sources) {
    auto& found = out[index_of(which)];
    found.name = view.from.describe(which);
    if (!found.name.empty()) found.live = from_.contents.find(which, view.from);
  }
  return out;
}

revision_ptr revision_source::render_once(unit of, const resource_view& view, const states& from,
                                          const choice& contents,
                                          std::chrono::system_clock::time_point now) {
  // All that a revision depends on; of the time only the hour: certificates expire.
  json::array key{to_string(of), view.inline_manifests,
                  std::chrono::floor<std::chrono::hours>(now).time_since_epoch().count()};
  for (std::size_t i = 0; i < from.size(); ++i) {
    key.push_back(json::string(from[i].name));
    if (contents[i] == live) key.push_back({from[i].live.uid(), from[i].live.resource_version()});
    if (contents[i] >= 0) key.push_back(json::string(from[i].stored[contents[i]]->digest));
  }
  auto& cached = cache_.use(json::serialize(key));
  if (cached) return cached;
  render_input input{.to = to_, .inline_manifests = view.inline_manifests};
  // What is stored had the label.
  input.labelled_only = view.own_manifests && contents[index_of(source_kind::manifests)] == live;
  for (std::size_t i = 0; i < from.size(); ++i) {
    input.sources[i].name = from[i].name;
    if (contents[i] == live) input.sources[i].object = from[i].live.parse();
    if (contents[i] >= 0) input.sources[i].object = from[i].stored[contents[i]]->value;
  }
  rendered_.Increment();
  auto rendered = render(of, input, now);
  for (const auto kind : all_sources) {
    const auto& source = from[index_of(kind)];
    if (unit_of(kind) != of || contents[index_of(kind)] != live) continue;
    rendered.sources.push_back({kind, source.name, source.live});
  }
  cached = std::make_shared<const revision>(std::move(rendered));
  return cached;
}

asio::awaitable<k8s::result<void>> revision_source::resolve_unit(
    unit of, const resource_view* view, std::chrono::system_clock::time_point now,
    unit_state* into) {
  auto from = locate(*view);
  choice desired;
  desired.fill(absent);
  std::vector<choice> fallbacks{desired};
  for (const auto kind : all_sources) {
    const auto i = index_of(kind);
    auto& source = from[i];
    // Manifests give way to the other unit's target; only its presence counts for that.
    if (source.name.empty() || unit_of(kind) != of) continue;
    auto loaded = co_await stored_.load(source.name);
    if (loaded) {
      source.stored = std::move(*loaded);
    } else if (is_permanent(loaded.error())) {
      into->warnings.push_back("the last good content can't be read: " + loaded.error().message);
    } else {
      co_return loaded.error();
    }
    if (source.live) {
      desired[i] = live;
    } else if (!source.stored.empty()) {
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
  const auto& warnings = first->found.warnings;
  into->warnings.insert(into->warnings.end(), warnings.begin(), warnings.end());
  if (first->valid()) {
    into->desired = first->digest;
    into->revisions.push_back(first);
  } else {
    into->invalid = describe(first->found.errors);
  }
  const bool any_stored =
      std::ranges::any_of(from, [](const source_state& each) { return !each.stored.empty(); });
  if (!any_stored) co_return k8s::result<void>();
  std::ranges::sort(fallbacks, {}, [](const choice& each) {
    return std::pair(std::accumulate(each.begin(), each.end(), 0), each);
  });
  for (const auto& each : fallbacks) {
    const auto fallback = render_once(of, *view, from, each, now);
    const bool known = std::ranges::any_of(into->revisions, [&](const revision_ptr& other) {
      return other->digest == fallback->digest;
    });
    if (fallback->valid() && !known) into->revisions.push_back(fallback);
  }
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> revision_source::resolve(
    resource_view view, std::chrono::system_clock::time_point now, sync_state* into) {
  for (const auto of : all_units) {
    const auto resolved = co_await resolve_unit(of, &view, now, &into->at(of));
    if (!resolved) co_return resolved.error();
  }
  co_return k8s::result<void>();
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

asio::awaitable<k8s::result<void>> revision_source::store_one(live_source source,
                                                              bool absent_only) {
  const auto loaded = co_await stored_.load(source.name);
  if (!loaded) co_return loaded.error();
  if (!loaded->empty() && stored_objects_[source.name] == source.object) {
    co_return k8s::result<void>();
  }
  const auto now = from_.contents.of(source.kind).objects().get(source.object.key());
  if ((absent_only && !loaded->empty()) || now != source.object) co_return k8s::result<void>();
  const auto stored = co_await stored_.store(source.name, content_of(source.object.parse()));
  if (stored) stored_objects_[source.name] = source.object;
  co_return stored;
}

asio::awaitable<void> revision_source::store(unit_state* unit, bool absent_only) {
  if (unit->revisions.empty()) co_return;
  const auto first = unit->revisions.front();
  for (const auto& each : first->sources) {
    const auto stored = co_await store_one(each, absent_only);
    if (stored) continue;
    unit->warnings.push_back("the content of the sources can't be stored to fall back to: " +
                             stored.error().message);
  }
}

}  // namespace rw::bootstrapper
