#include "rw/reactors/bootstrapper/rollout_turn.hpp"

#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {

namespace asio = boost::asio;
namespace json = boost::json;

namespace {

/// Of the stored content: the usual pull Secret was removed.
constexpr std::string_view removed_member = "pull Secret removed";
constexpr std::string_view kept_prefix = "revision ";
constexpr const char* without_credentials = "-without-pull-secret";

bool is_same(const content_ptr& one, const content_ptr& other) {
  return one && other ? one->digest == other->digest : one == other;
}

usual_revision read_revision(const json::value& stored) {
  usual_revision out{.credentials_removed = k8s::find(stored, {removed_member}) != nullptr};
  for (const auto kind : usual_kinds) {
    const auto* const found = k8s::find(stored, {to_string(kind)});
    if (found != nullptr && !found->is_null()) out.at(kind) = make_content(*found);
  }
  return out;
}

}  // namespace

json::value usual_revision::text() const {
  json::object out;
  for (const auto kind : usual_kinds) out[to_string(kind)] = at(kind) ? at(kind)->value : nullptr;
  if (credentials_removed) out[removed_member] = true;
  return out;
}

std::string usual_content::stored_name() const {
  return "rolled out: " + names_.config + ", " + names_.manifests + ", " + names_.trust_bundle;
}

asio::awaitable<k8s::result<void>> usual_content::load(std::chrono::system_clock::time_point now) {
  co_await stored_.restore();
  usual_revision kept;
  for (const auto kind : all_sources) {
    const auto name = names_.describe(kind);
    if (name.empty() || sources_.contents.find(kind, names_)) continue;
    const auto got = co_await stored_.load(name);
    if (!got && !is_permanent(got.error())) co_return got.error();
    const auto at = removal_.time_of(kind, stored_.missing_since(name));
    const bool due = at && now >= *at;
    if (kind == source_kind::pull_secret) {
      kept.credentials_removed = due;
    } else if (got && !got->empty()) {
      const auto& config = kept.at(source_kind::config);
      const auto object = sources_.contents.find(source_kind::config, names_);
      const auto used = [&] {
        return uses_trust_bundle(object ? object.parse() : config ? config->value : json::value());
      };
      if (!due || used()) kept.at(kind) = got->front();
    }
  }
  if (kept != kept_) current_ = {};
  kept_ = std::move(kept);
  if (loaded_) co_return k8s::result<void>();
  const auto got = co_await stored_.load(stored_name());
  if (!got && !is_permanent(got.error())) co_return got.error();
  if (got && !got->empty() && !loaded_) completed_ = read_revision(got->front()->value);
  if (!loaded_) current_ = {};  // it is compared with what is completed
  loaded_ = true;
  co_return k8s::result<void>();
}

std::string usual_content::revision_of(const std::string& digest, bool removed) {
  return digest.empty() || !removed ? digest : digest + without_credentials;
}

const shared_content& usual_content::current() {
  std::array<k8s::object, usual_kinds.size()> now;
  std::ranges::transform(usual_kinds, now.begin(),
                         [&](source_kind each) { return sources_.contents.find(each, names_); });
  if (now == objects_ && !current_.digest.empty()) return current_;
  objects_ = now;
  auto live = kept_;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i]) live.at(usual_kinds[i]) = make_content(content_of(now[i].parse()));
  }
  revision_ = pinned_digest_.empty() ? live : pinned_;
  // Nothing but another trust bundle may go to all runtimes at once.
  bool at_once = trust_at_once_ && pinned_digest_.empty() &&
                 revision_.credentials_removed == completed_.credentials_removed;
  for (const auto kind : usual_kinds) {
    const bool same = is_same(revision_.at(kind), completed_.at(kind));
    at_once = at_once && same != (kind == source_kind::trust_bundle);
  }
  current_ = {digest_of(revision_.text()), at_once};
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto kind = usual_kinds[i];
    if (!now[i]) continue;
    auto& all = is_same(revision_.at(kind), live.at(kind)) ? current_.sources : current_.waiting;
    all.push_back(
        {type_of(kind).gvk.kind, names_.name_of(kind), std::string(now[i].resource_version())});
  }
  return current_;
}

asio::awaitable<k8s::result<void>> usual_content::pin(std::string digest) {
  if (digest == pinned_digest_) co_return k8s::result<void>();
  usual_revision pinned;
  if (!digest.empty()) {
    const auto got = co_await stored_.load(kept_name(digest));
    if (!got) co_return got.error();
    if (got->empty() || got->front()->digest != digest) {
      co_return k8s::failure{.code = k8s::errc::not_found,
                             .message = "the content of revision " + digest + " is not kept"};
    }
    pinned = read_revision(got->front()->value);
  }
  pinned_digest_ = std::move(digest);
  pinned_ = std::move(pinned);
  current_ = {};
  co_return k8s::result<void>();
}

std::optional<content_set> usual_content::pinned() const {
  return pinned_digest_.empty() ? std::nullopt : std::optional(pinned_.contents);
}

std::string usual_content::kept_name(std::string_view digest) {
  return std::string(kept_prefix) + std::string(digest);
}

std::string_view usual_content::kept_digest(std::string_view name) {
  return name.starts_with(kept_prefix) ? name.substr(kept_prefix.size()) : std::string_view();
}

asio::awaitable<k8s::result<void>> usual_content::keep(std::string digest) {
  auto kept = co_await write(kept_name(digest), digest);
  co_return kept;
}

asio::awaitable<k8s::result<void>> usual_content::store(std::string digest) {
  // Without its source a runtime keeps what it has, so there is nothing new to fall back to.
  const bool whole = current().digest != digest ||
                     (revision_.at(source_kind::config) && revision_.at(source_kind::manifests));
  if (!whole) co_return k8s::result<void>();
  const auto written = revision_;
  const auto stored = co_await write(stored_name(), std::move(digest));
  if (stored) completed_ = written;
  if (stored) current_ = {};  // it is compared with what is completed
  co_return stored;
}

asio::awaitable<k8s::result<void>> usual_content::write(std::string name, std::string digest) {
  if (current().digest != digest) {
    co_return k8s::failure{.code = k8s::errc::conflict, .message = "the content has changed"};
  }
  auto stored = co_await stored_.store(std::move(name), make_content(revision_.text()), true);
  co_return stored;
}

void hold(unit_state& unit, const revision_ptr& completed) {
  auto& all = unit.revisions;
  const bool valid = !unit.desired.empty();
  if (valid) unit.withheld = all.front();
  auto stays = unit.had;
  const auto known = [&all](const std::string& digest) {
    const auto found =
        std::ranges::find(all, digest, [](const revision_ptr& each) { return each->digest; });
    return found == all.end() ? nullptr : *found;
  };
  if (!stays) stays = known(unit.in_place);
  const bool fits = completed && (unit.in_place.empty() || completed->digest == unit.in_place);
  if (!stays && fits) stays = completed;
  // Cut short on its way, and nothing else is known that it could be as a whole.
  if (!stays) {
    stays = known(unit.applying);
    if (stays == unit.withheld) unit.withheld = nullptr;
  }
  unit.lost = !stays && !unit.in_place.empty();
  all.clear();
  if (stays) all.push_back(stays);
  if (valid) unit.desired = stays ? stays->digest : unit.in_place;
}

}  // namespace rw::bootstrapper
