#pragma once

#include "rw/core/log.hpp"
#include "rw/reactors/shared/content_gate.hpp"
#include "rw/reactors/shared/content_store.hpp"
#include "rw/reactors/watcher_installer/installation.hpp"

#include <boost/asio/awaitable.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rw::watcher_installer {

/// What all runtimes share of the watcher's Deployment (render.hpp): the newest content, as
/// manifests and settings say, or one from before that is pinned in its place, and the one that was
/// rolled out to the end last. Each that was rolled out is kept in KCP (content_store.hpp). Without
/// a gate every runtime gets the newest.
///
/// Single executor; what it is given must outlive it.
class deployment_content {
 public:
  deployment_content(const install_options& options, core::logger& log);

  /// From now on the gate decides which runtimes may get the current content.
  void roll_out_by(content_gate& gate, content_store& stored,
                   std::function<void(const k8s::object_key&)> requeue);

  /// Reads what was rolled out last, once, and what the gate has pinned. Where the namespace of the
  /// contents does not exist, or rights are missing, nothing counts as rolled out. A pinned content
  /// that can't be read is logged; the gate then admits nobody.
  boost::asio::awaitable<k8s::result<void>> load();

  /// Stores what was rolled out last, and the current content, again where another client has
  /// deleted or changed it, and deletes those that can no longer be pinned, after `unused_for`.
  boost::asio::awaitable<void> repair(core::time_point now, core::duration unused_for);

  /// What runtimes are to get.
  const content_ptr& current() const noexcept { return pinned_ ? pinned_ : newest_; }
  /// What of it is pinned; empty: nothing.
  std::string pinned() const { return pinned_ ? pinned_->digest : std::string(); }
  /// The Deployment that was rolled out to the end last; null: none was.
  const content_ptr& completed() const noexcept { return completed_; }

  /// Records what is known of a runtime's Deployment; none: it is no part of the roll-out. Returns
  /// true if it may get the current content.
  bool admit(const k8s::object_key& runtime, const std::optional<content_facts>& now);
  /// The same where the Deployment has the content `in_place`, by its digest, and records nothing.
  bool admits(const k8s::object_key& runtime, std::string_view in_place) const;

 private:
  using done = boost::asio::awaitable<k8s::result<void>>;

  done pin(std::string digest);
  done keep(std::string digest);
  done store(std::string digest);
  done write(std::string name, boost::json::value value);
  boost::asio::awaitable<void> write_again(std::string name, boost::json::value value);
  bool is_unusable(const k8s::failure& error);

  core::logger& log_;
  const content_ptr newest_;  ///< its digest is the Deployment's annotation
  content_ptr completed_;
  content_ptr pinned_;
  int pinned_wire_version_ = 0;
  bool loaded_ = false;
  bool kept_ = false;  ///< the newest was
  content_gate* gate_ = nullptr;
  content_store* stored_ = nullptr;
  core::log_limit pin_log_;
  core::log_limit repair_log_;
};

}  // namespace rw::watcher_installer
