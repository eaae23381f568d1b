#include "rw/reactors/shared/content_store.hpp"

#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/content_digest.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace rw {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

/// Keys in a Secret, the newest content first.
constexpr std::array<std::string_view, 2> content_keys = {"newest", "previous"};
constexpr std::string_view source_annotation = "operator.kyma-project.io/source";
constexpr std::string_view missing_annotation = "operator.kyma-project.io/source-missing-since";
/// On a list: JSON, the listed contents as `fold` makes them, the newest first.
constexpr std::string_view contents_annotation = "operator.kyma-project.io/contents";
/// On a list: JSON, the digests of contents that it had before, the latest first.
constexpr std::string_view earlier_annotation = "operator.kyma-project.io/earlier-contents";
constexpr std::size_t max_earlier = 32;
/// On a content's own Secret: its digest.
constexpr std::string_view content_annotation = "operator.kyma-project.io/content";
constexpr std::string_view content_key = "content";

/// The digest of a content; of one in parts an object with the digests of those that are objects.
json::value fold(const content& of, bool in_parts) {
  if (!in_parts) return json::value(of.digest);
  json::object out;
  for (const auto& [name, part] : of.value.as_object()) {
    out[name] = part.is_object() ? json::value(digest_of(part)) : part;
  }
  return out;
}

json::array parse_list(std::string_view annotation) {
  auto all = k8s::read_json(annotation);
  return all && all->is_array() ? std::move(all->get_array()) : json::array();
}

void mark(const json::value& listed, std::unordered_set<std::string>& digests) {
  if (listed.is_string()) digests.emplace(listed.get_string());
  const auto* const parts = listed.if_object();
  if (parts == nullptr) return;
  for (const auto& each : *parts) {
    if (each.value().is_string()) digests.emplace(each.value().get_string());
  }
}

k8s::failure too_large(const std::string& error) {
  return {.code = k8s::errc::too_large, .message = "it " + error};
}

}  // namespace

content_ptr make_content(json::value value) {
  auto digest = digest_of(value);
  return std::make_shared<const content>(std::move(digest), std::move(value));
}

std::string digest_of(const json::value& value) {
  return content_digest().add(value).hex();
}

std::optional<std::string> size_error(const json::value& value) {
  const auto size = json::serialize(value).size();
  if (size <= source_bytes) return std::nullopt;
  return "has " + std::to_string(size) + " bytes, more than " + std::to_string(source_bytes) +
         " that can be stored";
}

/// Names of sources may have characters that a Secret's may not.
std::string content_store::secret_name(const std::string& source) const {
  return prefix_ + digest_of(json::value(source));
}

std::string content_store::content_name(std::string_view digest) const {
  return prefix_ + "content-" + std::string(digest);
}

asio::awaitable<k8s::result<content_ptr>> content_store::find(std::string digest) {
  if (auto known = loaded_[digest].lock()) co_return known;
  auto found = co_await read(std::move(digest));
  co_return found;
}

asio::awaitable<k8s::result<content_ptr>> content_store::read(std::string digest) {
  k8s::object_key key{ns_, content_name(digest)};
  const auto got = co_await kcp_.get(secrets_type(), std::move(key));
  if (!got && !got.error().is(k8s::errc::not_found)) co_return got.error();
  if (!got) co_return content_ptr();
  auto value = k8s::read_json(k8s::secret_data(*got, content_key).value_or(std::string()));
  auto found = value ? make_content(std::move(*value)) : content_ptr();
  if (!found || found->digest != digest) co_return content_ptr();
  loaded_[digest] = found;
  kept_.insert(digest);
  co_return found;
}

asio::awaitable<k8s::result<void>> content_store::keep(content_ptr added) {
  const auto& digest = added->digest;
  const auto name = content_name(digest);
  unused_.erase(name);
  if (kept_.contains(digest)) co_return k8s::result<void>();
  if (const auto error = size_error(added->value)) co_return too_large(*error);
  const auto found = co_await read(digest);
  if (!found || *found) co_return found ? k8s::result<void>() : found.error();
  json::value secret{
      {"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", {{"name", name}, {"namespace", ns_}}}};
  k8s::set_annotation(secret, content_annotation, digest);
  k8s::set_secret_data(secret, content_key, json::serialize(added->value));
  auto written = co_await kcp_.create(secrets_type(), secret);
  if (!written && written.error().is(k8s::errc::already_exists)) {  // and is damaged
    written = co_await kcp_.update(secrets_type(), std::move(secret));
  }
  if (!written && written.error().is(k8s::errc::not_found)) note_gone();
  if (!written) co_return written.error();
  kept_.insert(digest);
  loaded_[digest] = added;
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> content_store::keep_parts(contents of, bool in_parts) {
  if (!by_digest_) co_return k8s::result<void>();
  std::vector<content_ptr> all;
  for (const auto& each : of) {
    if (!in_parts) all.push_back(each);
    const auto* const parts = in_parts ? each->value.if_object() : nullptr;
    for (const auto& part : parts == nullptr ? json::object() : *parts) {
      if (part.value().is_object()) all.push_back(make_content(part.value()));
    }
  }
  for (auto& each : all) {
    const auto kept = co_await keep(std::move(each));
    if (!kept) co_return kept.error();
  }
  co_return k8s::result<void>();
}

/// Null: a content that is listed is not stored.
asio::awaitable<k8s::result<content_ptr>> content_store::unfold(json::value listed) {
  const auto* const parts = listed.if_object();
  if (parts == nullptr) {
    auto got = co_await find(listed.is_string() ? std::string(listed.get_string()) : std::string());
    co_return got;
  }
  json::object value;
  for (const auto& [name, part] : *parts) {
    value[name] = part;
    if (!part.is_string()) continue;
    const auto got = co_await find(std::string(part.get_string()));
    if (!got) co_return got.error();
    if (*got == nullptr) co_return content_ptr();
    value[name] = (*got)->value;
  }
  co_return make_content(std::move(value));
}

asio::awaitable<k8s::result<void>> content_store::fetch(std::string source) {
  if (entries_.contains(source)) co_return k8s::result<void>();
  k8s::object_key key{ns_, secret_name(source)};
  const auto got = co_await kcp_.get(secrets_type(), std::move(key));
  if (!got && !got.error().is(k8s::errc::not_found)) co_return got.error();
  entry out;
  if (got) {
    out.resource_version = k8s::resource_version_of(*got);
    out.missing_since = k8s::parse_rfc3339(k8s::annotation(*got, missing_annotation));
    const auto listed = parse_list(k8s::annotation(*got, contents_annotation));
    out.outdated = by_digest_ && listed.empty();
    for (const auto& each : parse_list(k8s::annotation(*got, earlier_annotation))) {
      if (each.is_string()) out.earlier.emplace_back(each.get_string());
    }
    for (std::size_t i = 0; i < content_keys.size(); ++i) {
      content_ptr found;
      if (i < listed.size()) {
        out.in_parts = out.in_parts || listed[i].is_object();
        auto stored = co_await unfold(listed[i]);
        if (!stored) co_return stored.error();
        found = std::move(*stored);
      }
      auto value = k8s::read_json(k8s::secret_data(*got, content_keys[i]).value_or(std::string()));
      if (!found && value) found = make_content(std::move(*value));
      if (found) out.stored.push_back(std::move(found));
    }
  }
  entries_.try_emplace(std::move(source), std::move(out));
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<content_store::contents>> content_store::load(std::string source) {
  const auto fetched = co_await fetch(source);
  if (!fetched) co_return fetched.error();
  co_return entries_[source].stored;
}

asio::awaitable<k8s::result<void>> content_store::store(std::string source, content_ptr added,
                                                        bool in_parts) {
  const auto fetched = co_await fetch(source);
  if (!fetched) co_return fetched.error();
  const auto error = by_digest_ ? std::nullopt : size_error(added->value);
  if (error) co_return too_large(*error);
  const auto kept = co_await keep_parts({added}, in_parts);
  if (!kept) co_return kept.error();
  auto& known = entries_[source];
  const bool is_newest = !known.stored.empty() && known.stored.front()->digest == added->digest;
  if (is_newest && !known.outdated && !known.gone) co_return k8s::result<void>();
  known.in_parts = in_parts;
  if (!is_newest) {
    std::erase(known.earlier, added->digest);
    known.stored.insert(known.stored.begin(), std::move(added));
  }
  if (known.stored.size() > content_keys.size()) {
    known.earlier.insert(known.earlier.begin(), known.stored.back()->digest);
    known.earlier.resize(std::min(known.earlier.size(), max_earlier));
    known.stored.pop_back();
  }
  auto written = co_await write(std::move(source));
  co_return written;
}

asio::awaitable<k8s::result<void>> content_store::note_missing(std::string source,
                                                               std::optional<time_point> at) {
  const auto fetched = co_await fetch(source);
  if (!fetched) co_return fetched.error();
  auto& known = entries_[source];
  const bool same = at.has_value() == known.missing_since.has_value();
  if (same || known.stored.empty()) co_return k8s::result<void>();
  // The API server keeps seconds.
  known.missing_since.reset();
  if (at) known.missing_since = std::chrono::ceil<std::chrono::seconds>(*at);
  auto written = co_await write(std::move(source));
  co_return written;
}

bool content_store::is_earlier(const std::string& source, std::string_view digest) const {
  const auto found = entries_.find(source);
  if (found == entries_.end()) return false;
  const auto& earlier = found->second.earlier;
  return std::ranges::find(earlier, digest) != earlier.end();
}

std::optional<content_store::time_point> content_store::missing_since(
    const std::string& source) const {
  const auto found = entries_.find(source);
  return found == entries_.end() ? std::nullopt : found->second.missing_since;
}

/// Writes an entry as it is known.
asio::awaitable<k8s::result<void>> content_store::write(std::string source) {
  const auto kept = co_await keep_parts(entries_[source].stored, entries_[source].in_parts);
  if (!kept) co_return kept.error();
  auto& known = entries_[source];
  const auto version = known.resource_version;
  json::object metadata{{"name", secret_name(source)},
                        {"namespace", ns_},
                        {"annotations", {{source_annotation, source}}}};
  if (!version.empty()) metadata["resourceVersion"] = version;
  json::value secret{{"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", std::move(metadata)}};
  if (known.missing_since) {
    k8s::set_annotation(secret, missing_annotation, k8s::format_time(*known.missing_since));
  }
  if (by_digest_) {
    json::array listed;
    for (const auto& each : known.stored) listed.push_back(fold(*each, known.in_parts));
    k8s::set_annotation(secret, contents_annotation, json::serialize(listed));
    if (!known.earlier.empty()) {
      k8s::set_annotation(secret, earlier_annotation,
                          json::serialize(json::array(known.earlier.begin(), known.earlier.end())));
    }
  }
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < known.stored.size(); ++i) {
    const auto text = json::serialize(known.stored[i]->value);
    bytes += text.size();
    if (bytes <= source_bytes) k8s::set_secret_data(secret, content_keys[i], text);
  }
  // The others that are here meanwhile have this content; they need not wait.
  auto request = version.empty() ? kcp_.create(secrets_type(), std::move(secret))
                                 : kcp_.update(secrets_type(), std::move(secret));
  const auto written = co_await std::move(request);
  const auto found = entries_.find(source);
  if (!written) {
    if (written.error().is(k8s::errc::not_found)) {
      note_gone();
    } else if (found != entries_.end()) {
      entries_.erase(found);
    }
    co_return written.error();
  }
  if (found == entries_.end()) co_return k8s::result<void>();
  found->second.resource_version = k8s::resource_version_of(*written);
  found->second.outdated = false;
  found->second.gone = false;
  co_return k8s::result<void>();
}

/// The namespace has gone, or a client has deleted a Secret: what is known is written again. A
/// Secret that is still there is then read again.
void content_store::note_gone() {
  kept_.clear();
  for (auto& [source, each] : entries_) {
    each.resource_version.clear();
    each.gone = !each.stored.empty();
  }
}

asio::awaitable<void> content_store::restore() {
  std::vector<std::string> gone;
  for (const auto& [source, each] : entries_) {
    if (each.gone) gone.push_back(source);
  }
  for (auto& source : gone) {
    const auto found = entries_.find(source);
    if (found == entries_.end() || !found->second.gone) continue;  // by now
    const auto written = co_await write(std::move(source));
    if (!written) co_return;
  }
}

asio::awaitable<k8s::result<void>> content_store::collect(
    std::function<bool(std::string_view)> is_used, core::time_point now,
    core::duration unused_for) {
  const auto list = co_await kcp_.list(secrets_type(), {.ns = ns_, .metadata_only = true});
  if (!list) co_return list.error();
  const auto before = std::exchange(unused_, {});
  std::vector<std::string> due;
  /// Returns true if a Secret is to be deleted.
  const auto is_due = [&](const json::value& each, std::string name) {
    if (is_used(name)) return false;
    const auto key = k8s::key_of(each);
    unused_secret secret{std::move(name), std::string(k8s::resource_version_of(each)), now};
    const auto known = before.find(key.name);
    const bool same =
        known != before.end() && known->second.resource_version == secret.resource_version;
    if (same) secret.since = known->second.since;
    const bool out = now - secret.since >= unused_for;
    if (out) due.push_back(key.name);
    unused_.insert_or_assign(key.name, std::move(secret));
    return out;
  };
  std::unordered_map<std::string, const json::value*> all_contents;
  std::unordered_set<std::string> present;
  std::unordered_set<std::string> listed;
  static const json::array none;
  const auto* const items = k8s::find_array(*list, {"items"});
  for (const auto& each : items == nullptr ? none : *items) {
    if (!k8s::key_of(each).name.starts_with(prefix_)) continue;
    std::string source(k8s::annotation(each, source_annotation));
    std::string digest(k8s::annotation(each, content_annotation));
    if (!source.empty() && !is_due(each, std::move(source))) {
      for (const auto& referred : parse_list(k8s::annotation(each, contents_annotation))) {
        mark(referred, listed);
      }
    }
    if (!digest.empty()) all_contents.emplace(*present.insert(std::move(digest)).first, &each);
  }
  for (const auto& [digest, secret] : all_contents) {
    if (!listed.contains(digest)) is_due(*secret, name_of(digest));
  }
  // What others have deleted is stored again when it is kept the next time.
  std::erase_if(kept_, [&](const std::string& digest) { return !present.contains(digest); });
  std::erase_if(loaded_, [&](const auto& each) {
    return each.second.expired() || !present.contains(each.first);
  });
  for (auto& name : due) {
    const auto found = unused_.find(name);
    if (found == unused_.end() || is_used(found->second.name)) continue;  // by now
    const auto secret = found->second;
    const auto removed = co_await kcp_.remove(secrets_type(), {ns_, name},
                                              {.resource_version = secret.resource_version});
    forget(secret.name);
    const bool gone = removed || removed.error().is(k8s::errc::not_found) ||
                      removed.error().is(k8s::errc::conflict);
    if (!gone) co_return removed.error();
  }
  co_return k8s::result<void>();
}

/// Of a Secret that is deleted: what is kept of it meanwhile is written again.
void content_store::forget(const std::string& name) {
  entries_.erase(name);
  if (!name.starts_with(name_of({}))) return;
  const auto digest = name.substr(name_of({}).size());
  kept_.erase(digest);
  loaded_.erase(digest);
}

}  // namespace rw
