#include "rw/reactors/watcher_installer/deployment_content.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/wire_version.hpp"

#include <memory>
#include <utility>

namespace rw::watcher_installer {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr const char* stored_name = "rolled out: watcher";
constexpr std::string_view kept_prefix = "kept: watcher ";

content_ptr as_content(json::value deployment) {
  auto digest = content_of(deployment);
  return std::make_shared<const content>(std::move(digest), std::move(deployment));
}

std::string kept_name(std::string_view digest) {
  return std::string(kept_prefix) + std::string(digest);
}

json::value kept_text(const json::value& deployment, int version) {
  return {{"deployment", deployment}, {"wireVersion", version}};
}

}  // namespace

deployment_content::deployment_content(const install_options& options, core::logger& log)
    : log_(log), newest_(as_content(shared_deployment(options.manifests, options.set))) {}

void deployment_content::roll_out_by(content_gate& gate, content_store& stored,
                                     std::function<void(const k8s::object_key&)> requeue) {
  gate_ = &gate;
  stored_ = &stored;
  gate.attach({std::move(requeue), [this](std::string digest) { return store(std::move(digest)); },
               [this](std::string digest) { return keep(std::move(digest)); }});
}

/// Returns true if a retry is useless; the reconciles then continue without the content.
bool deployment_content::is_unusable(const k8s::failure& error) {
  if (!is_lost(error)) return false;
  log_.warning("rolled-out content of the watcher can't be kept in KCP",
               {{"source", stored_name}, {"error", error.message}});
  return true;
}

asio::awaitable<k8s::result<void>> deployment_content::load() {
  if (stored_ == nullptr) co_return k8s::result<void>();
  if (!loaded_) {
    const auto got = co_await stored_->load(stored_name);
    if (!loaded_ && !got && !is_unusable(got.error())) co_return got.error();
    if (!loaded_ && got && !got->empty()) completed_ = as_content(got->front()->value);
    loaded_ = true;
  }
  const auto pinned = co_await pin(gate_->pinned());
  if (pinned) co_return pinned;
  if (!is_lost(pinned.error())) co_return pinned;
  gate_->note_unreadable(gate_->pinned(), pinned.error().message);
  log_.limited(pin_log_, core::log_level::warning,
               "pinned content of the watcher can't be read, so nothing is rolled out",
               {{"content", gate_->pinned()}, {"error", pinned.error().message}});
  co_return k8s::result<void>();
}

/// Makes a kept content take the place of the newest; empty: none.
asio::awaitable<k8s::result<void>> deployment_content::pin(std::string digest) {
  if (digest == pinned()) co_return k8s::result<void>();
  content_ptr pinned;
  int version = 0;
  if (!digest.empty()) {
    const auto got = co_await stored_->load(kept_name(digest));
    if (!got) co_return got.error();
    const auto* const found =
        got->empty() ? nullptr : k8s::find(got->front()->value, {"deployment"});
    if (found == nullptr || content_of(*found) != digest) {
      co_return k8s::failure{.code = k8s::errc::not_found,
                             .message = "the content of revision " + digest + " is not kept"};
    }
    pinned = as_content(*found);
    version = static_cast<int>(k8s::find_number(got->front()->value, {"wireVersion"}));
  }
  // Another pass may have been faster, or the pin have changed.
  if (digest != gate_->pinned()) co_return k8s::result<void>();
  pinned_ = std::move(pinned);
  pinned_wire_version_ = version;
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> deployment_content::write(std::string name, json::value value) {
  auto stored = co_await stored_->store(std::move(name), make_content(std::move(value)));
  co_return stored;
}

/// Where the content is pinned it is kept already.
asio::awaitable<k8s::result<void>> deployment_content::keep(std::string digest) {
  if (pinned_ && digest == pinned_->digest) co_return k8s::result<void>();
  if (digest != newest_->digest) {
    co_return k8s::failure{.code = k8s::errc::conflict, .message = "the content has changed"};
  }
  auto value = kept_text(newest_->value, wire_version);
  auto kept = co_await write(kept_name(digest), std::move(value));
  kept_ = kept_ || kept.has_value();
  co_return kept;
}

asio::awaitable<k8s::result<void>> deployment_content::store(std::string digest) {
  const auto content = current();
  if (content->digest != digest) {
    co_return k8s::failure{.code = k8s::errc::conflict, .message = "the content has changed"};
  }
  auto stored = co_await write(stored_name, content->value);
  if (!stored && !is_unusable(stored.error())) co_return stored;
  loaded_ = true;
  completed_ = content;
  co_return k8s::result<void>();
}

asio::awaitable<void> deployment_content::write_again(std::string name, json::value value) {
  stored_->reload(name);
  const auto done = co_await write(name, std::move(value));
  if (done) co_return;
  log_.limited(repair_log_, core::log_level::warning,
               "rolled-out content of the watcher can't be kept in KCP",
               {{"source", name}, {"error", done.error().message}});
}

asio::awaitable<void> deployment_content::repair(core::time_point now, core::duration unused_for) {
  if (stored_ == nullptr) co_return;
  if (completed_) co_await write_again(stored_name, completed_->value);
  if (kept_) {
    auto value = kept_text(newest_->value, wire_version);
    co_await write_again(kept_name(newest_->digest), std::move(value));
  }
  if (pinned_) {
    auto value = kept_text(pinned_->value, pinned_wire_version_);
    co_await write_again(kept_name(pinned_->digest), std::move(value));
  }
  std::function<bool(std::string_view)> used = [this](std::string_view name) {
    return !name.starts_with(kept_prefix) || gate_->may_be_pinned(name.substr(kept_prefix.size()));
  };
  const auto collected = co_await stored_->collect(std::move(used), now, unused_for);
  if (collected) co_return;
  log_.limited(repair_log_, core::log_level::warning,
               "contents of the watcher that can't be pinned any more can't be deleted",
               {{"error", collected.error().message}});
}

bool deployment_content::admit(const k8s::object_key& runtime,
                               const std::optional<content_facts>& now) {
  if (gate_ == nullptr) return true;
  if (!now) {
    gate_->leave(runtime);
    return true;
  }
  const auto& content = current();
  const content_revisions desired{content->digest, completed_ ? completed_->digest : std::string()};
  shared_content shared{.digest = content->digest,
                        .wire_version = pinned_ ? pinned_wire_version_ : wire_version};
  if (content->digest != newest_->digest) {
    shared.waiting.push_back({"Deployment", std::string(skr_webhook_name), newest_->digest});
  }
  const bool admitted = gate_->admit(runtime, shared, desired, *now);
  gate_->observe(runtime, *now);
  return admitted;
}

bool deployment_content::admits(const k8s::object_key& runtime, std::string_view in_place) const {
  const auto& newest = current()->digest;
  return gate_ == nullptr || in_place == newest || gate_->still_admits(runtime, newest);
}

}  // namespace rw::watcher_installer
