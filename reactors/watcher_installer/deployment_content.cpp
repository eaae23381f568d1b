#include "rw/reactors/watcher_installer/deployment_content.hpp"

#include "rw/k8s/objects/types.hpp"

#include <memory>
#include <utility>

namespace rw::watcher_installer {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr const char* stored_name = "rolled out: watcher";

content_ptr as_content(json::value deployment) {
  auto digest = content_of(deployment);
  return std::make_shared<const content>(std::move(digest), std::move(deployment));
}

}  // namespace

deployment_content::deployment_content(const install_options& options, core::logger& log)
    : log_(log), newest_(as_content(shared_deployment(options.manifests, options.set))) {}

void deployment_content::roll_out_by(content_gate& gate, content_store& stored,
                                     std::function<void(const k8s::object_key&)> requeue) {
  gate_ = &gate;
  stored_ = &stored;
  // The newest content stays the same as long as this process runs.
  gate.attach({std::move(requeue), [this](std::string) { return store(); }});
}

/// Returns true if a retry is useless; the reconciles then continue without the content.
bool deployment_content::is_unusable(const k8s::failure& error) {
  if (!k8s::is_permanent(error) && !error.is(k8s::errc::not_found)) return false;
  log_.warning("rolled-out content of the watcher can't be kept in KCP",
               {{"source", stored_name}, {"error", error.message}});
  return true;
}

asio::awaitable<k8s::result<void>> deployment_content::load() {
  if (stored_ == nullptr || loaded_) co_return k8s::result<void>();
  const auto got = co_await stored_->load(stored_name);
  if (loaded_) co_return k8s::result<void>();
  if (!got && !is_unusable(got.error())) co_return got.error();
  if (got && !got->empty()) completed_ = as_content(got->front()->value);
  loaded_ = true;
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> deployment_content::store() {
  auto content = make_content(newest_->value);
  auto stored = co_await stored_->store(stored_name, std::move(content));
  if (!stored && !is_unusable(stored.error())) co_return stored;
  loaded_ = true;
  completed_ = newest_;
  co_return k8s::result<void>();
}

asio::awaitable<void> deployment_content::repair() {
  if (stored_ == nullptr || !completed_) co_return;
  stored_->reload(stored_name);
  auto content = make_content(completed_->value);
  const auto done = co_await stored_->store(stored_name, std::move(content));
  if (done) co_return;
  log_.limited(repair_log_, core::log_level::warning,
               "rolled-out content of the watcher can't be kept in KCP",
               {{"source", stored_name}, {"error", done.error().message}});
}

bool deployment_content::admit(const k8s::object_key& runtime,
                               const std::optional<content_facts>& now) {
  if (gate_ == nullptr) return true;
  if (!now) {
    gate_->leave(runtime);
    return true;
  }
  const content_revisions desired{newest(), completed_ ? completed_->digest : std::string()};
  const bool admitted = gate_->admit(runtime, {.digest = newest()}, desired, *now);
  gate_->observe(runtime, *now);
  return admitted;
}

}  // namespace rw::watcher_installer
