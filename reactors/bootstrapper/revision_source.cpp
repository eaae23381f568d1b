#include "rw/reactors/bootstrapper/revision_source.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

std::size_t index_of(source_kind kind) {
  return static_cast<std::size_t>(kind);
}

constexpr const char* content_used =
    "its last valid content stays, as the configuration of the runtime refers to it";

void add_revision(const revision_ptr& added, unit_state* into) {
  const bool known = std::ranges::any_of(
      into->revisions, [&](const revision_ptr& other) { return other->digest == added->digest; });
  if (!known) into->revisions.push_back(added);
}

void note_failure(unit_state* unit, const k8s::failure& error) {
  unit->warnings.push_back("the content of the sources can't be stored to fall back to: " +
                           error.message);
  unit->not_stored = unit->not_stored || !error.is(k8s::errc::too_large);
}

/// Of a source whose content may be stored in a later pass.
k8s::failure not_stored(const std::string& source, const std::string& cause) {
  return {.code = k8s::errc::server_error,
          .message = source + " waits until it can be stored as the newest: " + cause};
}

}  // namespace

void keep_credentials(unit_state& unit) {
  unit.revisions.erase(unit.revisions.begin());
  unit.desired = unit.revisions.empty() ? std::string() : unit.revisions.front()->digest;
}

revision_source::revision_source(const sources& from, target_names to, source_removal removal,
                                 content_store& stored, core::metrics& registry)
    : sources_(from),
      names_(std::move(to)),
      removal_(removal),
      stored_(stored),
      rendered_(core::make_counter(registry, "rw_bootstrapper_rendered_total",
                                   "Number of revisions rendered and validated")) {}

revision_ptr revision_source::render_once(unit of, const resource_view& view,
                                          const content_set& contents, bool unlabelled,
                                          std::chrono::system_clock::time_point now) {
  render_input input{
      .to = names_, .inline_manifests = view.inline_manifests, .unlabelled = unlabelled};
  // All that a revision depends on; of the time only the hour: certificates expire.
  json::array key{to_string(of), view.inline_manifests, unlabelled,
                  std::chrono::floor<std::chrono::hours>(now).time_since_epoch().count()};
  content_set used;
  for (const auto kind : all_sources) {
    // Manifests give way to the other unit's target; only its presence counts for that.
    input.at(kind).name = view.from.describe(kind);
    key.push_back(json::string(input.at(kind).name));
    const auto& content = contents[index_of(kind)];
    if (!content || input.at(kind).name.empty() || unit_of(kind) != of) continue;
    key.push_back(json::string(content->digest));
    used[index_of(kind)] = content;
  }
  auto& cached = cache_.use(json::serialize(key));
  if (cached) return cached;
  for (const auto kind : all_sources) {
    if (const auto& content = used[index_of(kind)]) input.at(kind).object = content->value;
  }
  rendered_.Increment();
  auto rendered = render(of, input, now);
  rendered.contents = std::move(used);
  cached = std::make_shared<const revision>(std::move(rendered));
  return cached;
}

/// Returns true if the content of this source, which does not exist, is to be removed.
bool revision_source::note_missing(source_kind kind, const std::string& name,
                                   std::chrono::system_clock::time_point now, unit_state* into) {
  const auto at = removal_.time_of(kind, stored_.missing_since(name));
  const bool due = at && now >= *at;
  into->removal = into->removal || due;
  into->missing[name] =
      !at   ? "its last valid content stays"
      : due ? "its content is removed from the runtime"
            : "its content is removed from the runtime after " + k8s::format_time(*at);
  if (at && !due && (!into->recheck_at || *at < *into->recheck_at)) into->recheck_at = at;
  return due;
}

/// The contents of one unit by their digests; none: one of them is not stored.
asio::awaitable<k8s::result<std::optional<content_set>>> revision_source::find(
    content_digests digests) {
  content_set out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (digests[i].empty()) continue;
    auto found = co_await stored_.find(digests[i]);
    if (!found && !is_permanent(found.error())) co_return found.error();
    if (!found || *found == nullptr) co_return std::optional<content_set>();
    out[i] = std::move(*found);
  }
  co_return std::optional(out);
}

/// Adds what the runtime has, and what it was becoming, to the revisions of a unit.
asio::awaitable<k8s::result<void>> revision_source::add_own(
    unit of, const resource_view* view, std::chrono::system_clock::time_point now,
    unit_state* into) {
  const auto is_own = [](const content_digests& of) { return of != content_digests(); };
  for (const auto* const digests : {&into->contents, &into->applying_contents}) {
    if (!is_own(*digests)) continue;
    const auto found = co_await find(*digests);
    if (!found) co_return found.error();
    if (!*found) continue;
    const auto own = render_once(of, *view, **found, false, now);
    const bool changing = digests == &into->applying_contents;
    if (!own->valid() || (changing && own->digest != into->applying)) continue;
    if (!changing) into->had = own;
    add_revision(own, into);
  }
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> revision_source::resolve_unit(
    unit of, const resource_view* view, std::chrono::system_clock::time_point now,
    const content_set* pinned, unit_state* into, bool records) {
  content_set desired;
  content_set newest;
  content_set previous;
  bool unlabelled = false;
  bool credentials_missing = false;
  for (const auto kind : all_sources) {
    const auto name = view->from.describe(kind);
    if (name.empty() || unit_of(kind) != of) continue;
    auto loaded = co_await stored_.load(name);
    if (!loaded && !is_permanent(loaded.error())) co_return loaded.error();
    if (!loaded) {
      into->warnings.push_back("the last good content can't be read: " + loaded.error().message);
    }
    const auto stored = loaded ? std::move(*loaded) : content_store::contents();
    auto& content = desired[index_of(kind)];
    if (!stored.empty()) {
      content = newest[index_of(kind)] = stored.front();
      previous[index_of(kind)] = stored.back();
    }
    const auto object =
        pinned == nullptr ? sources_.contents.find(kind, view->from) : k8s::object();
    if (pinned != nullptr) content = (*pinned)[index_of(kind)];
    const bool missing = !object && !stored.empty() && pinned == nullptr;
    if (records) {
      const auto noted = co_await stored_.note_missing(
          name, missing && removal_.enabled ? std::optional(now) : std::nullopt);
      if (!noted && !is_permanent(noted.error())) co_return noted.error();
    }
    if (missing && note_missing(kind, name, now, into)) content = nullptr;
    credentials_missing = credentials_missing || (missing && kind == source_kind::pull_secret);
    if (object) {
      auto& live = live_[name];
      if (live.object != object) {
        live = {object, make_content(content_of(object.parse()))};
        for (const auto& each : stored) {
          if (each->digest == live.content->digest) live.content = each;  // one copy in memory
        }
      }
      content = live.content;
      unlabelled = unlabelled || (kind == source_kind::manifests && view->own_manifests &&
                                  k8s::label(object.parse(), manifests_label) != "true");
    }
  }
  auto without = *view;
  if (into->removal && of == unit::credentials) without.from.pull_secret.clear();
  auto first = render_once(of, without, desired, unlabelled, now);
  if (into->removal && of == unit::bootstrapper && !first->valid()) {
    // The configuration may refer to the bundle: with it, it may be valid.
    into->removal = false;
    into->missing[view->from.describe(source_kind::trust_bundle)] = content_used;
    auto& bundle = desired[index_of(source_kind::trust_bundle)];
    if (!bundle) bundle = newest[index_of(source_kind::trust_bundle)];
    first = render_once(of, *view, desired, unlabelled, now);
  }
  const auto& warnings = first->found.warnings;
  into->warnings.insert(into->warnings.end(), warnings.begin(), warnings.end());
  if (first->valid()) {
    into->desired = first->digest;
    into->revisions.push_back(first);
  } else {
    into->invalid = describe(first->found.errors);
  }
  // A status of the previous release does not say what the runtime has.
  for (const auto& stored : {newest, into->contents == content_digests() ? previous : newest}) {
    if (stored == content_set()) break;
    const auto fallback = render_once(of, *view, stored, false, now);  // what is stored had it
    if (fallback->valid()) add_revision(fallback, into);
  }
  auto added = co_await add_own(of, view, now, into);
  const bool has_none = credentials_missing || (of == unit::credentials && !first->valid());
  into->sourceless = has_none && !into->removal;
  if (added && of == unit::credentials) {
    added = co_await settle_order(view->from.describe(source_kind::pull_secret), newest, previous,
                                  into);
  }
  co_return added;
}

/// The listed credentials may be older than those that the runtime has, or is getting, if those
/// could not be listed. They must not go back: then they stay as they are.
asio::awaitable<k8s::result<void>> revision_source::settle_order(std::string source,
                                                                 content_set newest,
                                                                 content_set previous,
                                                                 unit_state* into) {
  const auto digest_in = [](const content_digests& of) {
    return of[index_of(source_kind::pull_secret)];
  };
  const auto listed = digest_in(digests_of(newest));
  const auto before = digest_in(digests_of(previous));
  auto& all = into->revisions;
  std::string own;
  bool newer = !listed.empty();  // than the runtime's
  for (const auto* const digests : {&into->contents, &into->applying_contents}) {
    const auto digest = digest_in(*digests);
    if (digest.empty()) continue;
    own = digest;
    if (digest != listed && (digest == before || stored_.is_earlier(source, digest))) continue;
    newer = false;
    if (!into->sourceless || digest == listed) continue;
    const auto found = co_await stored_.find(digest);
    if (!found && !is_permanent(found.error())) co_return found.error();
    if (found && *found) continue;
    all.clear();
    into->desired = into->in_place;
    into->lost = true;
  }
  const auto revision_with = [&](const std::string& digest) {
    return std::ranges::find(all, digest, [&](const revision_ptr& each) {
      return digest_in(digests_of(each->contents));
    });
  };
  if (const auto found = revision_with(listed); newer && found != all.end()) {
    into->newer = (*found)->digest;
  }
  if (newer || own.empty() || !into->sourceless) co_return k8s::result<void>();
  if (const auto found = revision_with(own); found != all.end()) {
    std::rotate(all.begin(), found, found + 1);
    into->desired = all.front()->digest;
  }
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> revision_source::resolve(
    resource_view view, std::chrono::system_clock::time_point now,
    std::optional<content_set> pinned, sync_state* into, bool records) {
  for (const auto of : all_units) {
    const auto* const fixed = pinned && of == unit::bootstrapper ? &*pinned : nullptr;
    const auto resolved = co_await resolve_unit(of, &view, now, fixed, &into->at(of), records);
    if (!resolved) co_return resolved.error();
  }
  auto& credentials = into->at(unit::credentials);
  const auto& all = into->at(unit::bootstrapper).revisions;
  const bool used = all.empty() || all.front()->uses_pull_secret;
  if (credentials.removal && used) {
    keep_credentials(credentials);
    credentials.removal = false;
    credentials.missing[view.from.describe(source_kind::pull_secret)] = content_used;
  }
  co_return k8s::result<void>();
}

revision_ptr revision_source::render_stored(const resource_view& view, const content_set& contents,
                                            std::chrono::system_clock::time_point now) {
  const auto rendered = render_once(unit::bootstrapper, view, contents, false, now);
  return rendered->valid() ? rendered : revision_ptr();
}

asio::awaitable<void> revision_source::keep(unit_state* unit) {
  auto all = unit->revisions;
  if (unit->withheld) all.push_back(unit->withheld);  // it may be completed
  for (const auto& each : all) {
    for (const auto& content : each->contents) {
      if (!content) continue;
      const auto kept = co_await stored_.keep(content);
      if (kept) continue;
      note_failure(unit, kept.error());
      co_return;
    }
  }
}

asio::awaitable<k8s::result<void>> revision_source::store(bootstrapper_sources names,
                                                          unit_state* unit) {
  if (unit->revisions.empty()) co_return k8s::result<void>();
  k8s::result<void> out;
  const auto contents = unit->revisions.front()->contents;
  for (const auto kind : all_sources) {
    const auto name = names.describe(kind);
    const auto& content = contents[index_of(kind)];
    const auto live = live_.find(name);
    if (!content || live == live_.end()) continue;
    if (live->second.content->digest == content->digest) {
      const auto stored = co_await stored_.store(name, content);
      if (stored) continue;
      note_failure(unit, stored.error());
      if (!is_lost(stored.error())) out = not_stored(name, stored.error().message);
      continue;
    }
    const auto known = [&](const content_digests& of) {
      return of[index_of(kind)] == content->digest;
    };
    if (known(unit->contents) || known(unit->applying_contents)) continue;
    const auto listed = co_await stored_.load(name);
    const bool old = listed && std::ranges::find(*listed, content->digest, &rw::content::digest) !=
                                   listed->end();
    if (!old) out = not_stored(name, "it has changed meanwhile");
  }
  co_return out;
}

}  // namespace rw::bootstrapper
