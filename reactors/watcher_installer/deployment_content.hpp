#pragma once

#include "rw/core/log.hpp"
#include "rw/reactors/shared/content_gate.hpp"
#include "rw/reactors/shared/content_store.hpp"
#include "rw/reactors/watcher_installer/installation.hpp"

#include <boost/asio/awaitable.hpp>

#include <functional>
#include <optional>
#include <string>

namespace rw::watcher_installer {

/// What all runtimes share of the watcher's Deployment (render.hpp): the newest content, as
/// manifests and settings say, and the one that was rolled out to the end last, which is kept in
/// KCP (content_store.hpp). Without a gate every runtime gets the newest.
///
/// Single executor; what it is given must outlive it.
class deployment_content {
 public:
  deployment_content(const install_options& options, core::logger& log);

  /// From now on the gate decides which runtimes may get the newest content.
  void roll_out_by(content_gate& gate, content_store& stored,
                   std::function<void(const k8s::object_key&)> requeue);

  /// Reads what was rolled out last, once. Where the namespace of the contents does not exist, or
  /// rights are missing, nothing counts as rolled out.
  boost::asio::awaitable<k8s::result<void>> load();

  /// Stores what was rolled out last again where another client has deleted or changed it.
  boost::asio::awaitable<void> repair();

  const std::string& newest() const noexcept { return newest_->digest; }
  /// The Deployment that was rolled out to the end last; null: none was.
  const content_ptr& completed() const noexcept { return completed_; }

  /// Records what is known of a runtime's Deployment; none: it is no part of the roll-out. Returns
  /// true if it may get the newest content.
  bool admit(const k8s::object_key& runtime, const std::optional<content_facts>& now);

 private:
  boost::asio::awaitable<k8s::result<void>> store();
  bool is_unusable(const k8s::failure& error);

  core::logger& log_;
  const content_ptr newest_;  ///< its digest is the Deployment's annotation
  content_ptr completed_;
  bool loaded_ = false;
  content_gate* gate_ = nullptr;
  content_store* stored_ = nullptr;
  core::log_limit repair_log_;
};

}  // namespace rw::watcher_installer
