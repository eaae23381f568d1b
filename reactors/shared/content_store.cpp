#include "rw/reactors/shared/content_store.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/content_digest.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
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

asio::awaitable<k8s::result<void>> content_store::fetch(std::string source) {
  if (entries_.contains(source)) co_return k8s::result<void>();
  k8s::object_key key{ns_, secret_name(source)};
  const auto got = co_await kcp_.get(secrets_type(), std::move(key));
  if (!got && !got.error().is(k8s::errc::not_found)) co_return got.error();
  entry found;
  if (got) {
    found.resource_version = k8s::resource_version_of(*got);
    found.missing_since = k8s::parse_rfc3339(k8s::annotation(*got, missing_annotation));
    for (const auto name : content_keys) {
      const auto text = k8s::secret_data(*got, name);
      boost::system::error_code damaged;
      auto value = json::parse(text.value_or(std::string()), damaged);
      if (!damaged) found.stored.push_back(make_content(std::move(value)));
    }
  }
  entries_.try_emplace(std::move(source), std::move(found));
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<content_store::contents>> content_store::load(std::string source) {
  const auto fetched = co_await fetch(source);
  if (!fetched) co_return fetched.error();
  co_return entries_[source].stored;
}

asio::awaitable<k8s::result<void>> content_store::store(std::string source, content_ptr added,
                                                        bool absent_only) {
  const auto fetched = co_await fetch(source);
  if (!fetched) co_return fetched.error();
  auto& known = entries_[source];
  const bool is_newest = !known.stored.empty() && known.stored.front()->digest == added->digest;
  if (is_newest || (absent_only && !known.stored.empty())) co_return k8s::result<void>();
  if (const auto error = size_error(added->value)) {
    co_return k8s::failure{.code = k8s::errc::too_large, .message = "it " + *error};
  }
  known.stored.insert(known.stored.begin(), std::move(added));
  if (known.stored.size() > content_keys.size()) known.stored.pop_back();
  auto written = co_await write(std::move(source));
  co_return written;
}

asio::awaitable<k8s::result<void>> content_store::repair(std::string source) {
  const auto known = entries_.find(source);
  if (known == entries_.end() || known->second.stored.empty()) co_return k8s::result<void>();
  const auto version = known->second.resource_version;
  k8s::object_key key{ns_, secret_name(source)};
  const auto got = co_await kcp_.get(secrets_type(), std::move(key));
  if (!got && !got.error().is(k8s::errc::not_found)) co_return got.error();
  const std::string present(got ? k8s::resource_version_of(*got) : std::string_view());
  const auto now = entries_.find(source);
  // It was written here meanwhile.
  if (now == entries_.end() || now->second.resource_version != version || present == version) {
    co_return k8s::result<void>();
  }
  now->second.resource_version = present;
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

std::optional<content_store::time_point> content_store::missing_since(
    const std::string& source) const {
  const auto found = entries_.find(source);
  return found == entries_.end() ? std::nullopt : found->second.missing_since;
}

/// Writes an entry as it is known.
asio::awaitable<k8s::result<void>> content_store::write(std::string source) {
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
    if (found != entries_.end()) entries_.erase(found);
    co_return written.error();
  }
  if (found != entries_.end()) found->second.resource_version = k8s::resource_version_of(*written);
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> content_store::collect(
    std::function<bool(std::string_view)> is_used, core::time_point now,
    core::duration unused_for) {
  const auto list = co_await kcp_.list(secrets_type(), {.ns = ns_, .metadata_only = true});
  if (!list) co_return list.error();
  const auto before = std::exchange(unused_, {});
  std::vector<std::string> due;
  const auto* const items = k8s::find_array(*list, {"items"});
  for (const auto& each : items == nullptr ? json::array() : *items) {
    std::string source(k8s::annotation(each, source_annotation));
    if (source.empty() || is_used(source)) continue;
    unused_secret unused{k8s::key_of(each), std::string(k8s::resource_version_of(each)), now};
    const auto known = before.find(source);
    const bool same =
        known != before.end() && known->second.resource_version == unused.resource_version;
    if (same) unused.since = known->second.since;
    if (now - unused.since >= unused_for) due.push_back(source);
    unused_.insert_or_assign(std::move(source), std::move(unused));
  }
  for (const auto& source : due) {
    if (is_used(source)) continue;  // by now
    auto secret = unused_.at(source);
    const auto removed =
        co_await kcp_.remove(secrets_type(), std::move(secret.key),
                             {.resource_version = std::move(secret.resource_version)});
    entries_.erase(source);
    const bool gone = removed || removed.error().is(k8s::errc::not_found) ||
                      removed.error().is(k8s::errc::conflict);
    if (!gone) co_return removed.error();
  }
  co_return k8s::result<void>();
}

}  // namespace rw
