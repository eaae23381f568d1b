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

}  // namespace

bool usual_content::used_by(const resource_view& view) const {
  return view.from.config == names_.config && view.from.manifests == names_.manifests &&
         (view.from.trust_bundle.empty() || view.from.trust_bundle == names_.trust_bundle);
}

std::string usual_content::stored_name() const {
  return "rolled out: " + names_.config + ", " + names_.manifests + ", " + names_.trust_bundle;
}

asio::awaitable<k8s::result<void>> usual_content::load(std::chrono::system_clock::time_point now) {
  content_set kept;
  bool removed = false;
  for (const auto kind : all_sources) {
    const auto name = names_.describe(kind);
    if (name.empty() || from_.contents.find(kind, names_)) continue;
    const auto got = co_await stored_.load(name);
    if (!got && !is_permanent(got.error())) co_return got.error();
    const auto at = removal_.time_of(kind, stored_.missing_since(name));
    const bool due = at && now >= *at;
    if (kind == source_kind::pull_secret) {
      removed = due;
    } else if (got && !got->empty()) {
      const auto& config = kept[static_cast<std::size_t>(source_kind::config)];
      const auto object = from_.contents.find(source_kind::config, names_);
      const auto used = [&] {
        return uses_trust_bundle(object ? object.parse() : config ? config->value : json::value());
      };
      if (!due || used()) kept[static_cast<std::size_t>(kind)] = got->front();
    }
  }
  if (kept != kept_ || removed != credentials_removed_) current_ = {};
  kept_ = std::move(kept);
  credentials_removed_ = removed;
  if (loaded_) co_return k8s::result<void>();
  const auto got = co_await stored_.load(stored_name());
  if (!got && !is_permanent(got.error())) co_return got.error();
  if (got && !got->empty() && !loaded_) set_completed(got->front()->value);
  loaded_ = true;
  co_return k8s::result<void>();
}

/// Null: it does not exist, and no content of it is kept.
json::value usual_content::content_now(source_kind kind) const {
  if (const auto object = from_.contents.find(kind, names_)) return content_of(object.parse());
  const auto& kept = kept_[static_cast<std::size_t>(kind)];
  return kept ? kept->value : json::value();
}

std::string usual_content::revision_of(const std::string& digest, bool removed) {
  return digest.empty() || !removed ? digest : digest + without_credentials;
}

const shared_content& usual_content::current() {
  std::array<k8s::object, kinds.size()> now;
  std::ranges::transform(kinds, now.begin(),
                         [&](source_kind each) { return from_.contents.find(each, names_); });
  if (now == objects_ && !current_.digest.empty()) return current_;
  objects_ = now;
  if (pinned_.empty()) {
    json::object content;
    for (const auto kind : kinds) content[to_string(kind)] = content_now(kind);
    if (credentials_removed_) content[removed_member] = true;
    content_ = std::move(content);
  } else {
    content_ = pinned_content_;
  }
  // Nothing but another trust bundle may go to all runtimes at once.
  bool at_once = trust_at_once_ && pinned_.empty() && credentials_removed_ == completed_removal_;
  for (const auto kind : kinds) {
    const auto& before = completed_[static_cast<std::size_t>(kind)];
    const auto& value = content_.at(to_string(kind));
    const bool same = before ? before->value == value : value.is_null();
    at_once = at_once && same != (kind == source_kind::trust_bundle);
  }
  current_ = {digest_of(content_), at_once};
  add_sources();
  return current_;
}

/// The objects in KCP are the content's sources, or, where another content is pinned and differs,
/// wait.
void usual_content::add_sources() {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto& object = objects_[i];
    if (!object) continue;
    const bool same = pinned_.empty() || content_.at(to_string(kinds[i])) == content_now(kinds[i]);
    auto& all = same ? current_.sources : current_.waiting;
    all.push_back({type_of(kinds[i]).gvk.kind, names_.name_of(kinds[i]),
                   std::string(object.resource_version())});
  }
}

asio::awaitable<k8s::result<void>> usual_content::pin(std::string digest) {
  if (digest == pinned_) co_return k8s::result<void>();
  json::value content;
  if (!digest.empty()) {
    const auto got = co_await stored_.load(kept_name(digest));
    if (!got) co_return got.error();
    if (got->empty() || got->front()->digest != digest) {
      co_return k8s::failure{.code = k8s::errc::not_found,
                             .message = "the content of revision " + digest + " is not kept"};
    }
    content = got->front()->value;
  }
  pinned_ = std::move(digest);
  pinned_content_ = std::move(content);
  pinned_set_.reset();
  if (!pinned_.empty()) pinned_set_ = contents_of(pinned_content_);
  current_ = {};
  co_return k8s::result<void>();
}

std::string usual_content::kept_name(std::string_view digest) {
  return std::string(kept_prefix) + std::string(digest);
}

std::string_view usual_content::kept_digest(std::string_view name) {
  return name.starts_with(kept_prefix) ? name.substr(kept_prefix.size()) : std::string_view();
}

asio::awaitable<k8s::result<void>> usual_content::keep(std::string digest) {
  if (current().digest != digest) {
    co_return k8s::failure{.code = k8s::errc::conflict, .message = "the content has changed"};
  }
  auto kept = co_await stored_.store(kept_name(digest), make_content(content_), true);
  co_return kept;
}

asio::awaitable<k8s::result<void>> usual_content::store(std::string digest) {
  if (current().digest != digest) {
    co_return k8s::failure{.code = k8s::errc::conflict, .message = "the content has changed"};
  }
  const auto content = content_;
  // Without its source a runtime keeps what it has, so there is nothing new to fall back to.
  const bool whole = !content.at(to_string(source_kind::config)).is_null() &&
                     !content.at(to_string(source_kind::manifests)).is_null();
  if (!whole) co_return k8s::result<void>();
  const auto stored = co_await stored_.store(stored_name(), make_content(content), true);
  if (stored) set_completed(content);
  co_return stored;
}

void usual_content::set_completed(const json::value& contents) {
  current_ = {};  // it is compared with these
  completed_removal_ = k8s::find(contents, {removed_member}) != nullptr;
  completed_ = contents_of(contents);
}

content_set usual_content::contents_of(const json::value& all) {
  content_set out;
  for (const auto kind : kinds) {
    const auto* const found = k8s::find(all, {to_string(kind)});
    if (found == nullptr || found->is_null()) continue;
    out[static_cast<std::size_t>(kind)] = make_content(*found);
  }
  return out;
}

void hold(unit_state& unit, const revision_ptr& completed) {
  auto& all = unit.revisions;
  const bool valid = !unit.desired.empty();
  if (valid) unit.withheld = all.front();
  auto stays = unit.had;
  const auto in_place =
      std::ranges::find(all, unit.in_place, [](const revision_ptr& each) { return each->digest; });
  if (!stays && in_place != all.end()) stays = *in_place;
  const bool fits = completed && (unit.in_place.empty() || completed->digest == unit.in_place);
  if (!stays && fits) stays = completed;
  // Cut short on its way to the newest, and nothing else is known that it could be as a whole.
  const bool on_its_way = unit.withheld && unit.withheld->digest == unit.applying;
  if (!stays && on_its_way) stays = std::exchange(unit.withheld, nullptr);
  all.clear();
  if (stays) all.push_back(stays);
  if (valid) unit.desired = stays ? stays->digest : unit.in_place;
}

}  // namespace rw::bootstrapper
