#pragma once

#include "rw/reactors/bootstrapper/plan.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"
#include "rw/reactors/bootstrapper/revision_source.hpp"
#include "rw/reactors/shared/content_gate.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace rw::bootstrapper {

/// The sources that all runtimes share of unit `bootstrapper`.
inline constexpr std::array usual_kinds = {source_kind::config, source_kind::manifests,
                                           source_kind::trust_bundle};

/// What of them is rolled out as one.
struct usual_revision {
  content_set contents = {};         ///< null: none
  bool credentials_removed = false;  ///< and the usual pull Secret with it

  content_ptr& at(source_kind kind) { return contents[static_cast<std::size_t>(kind)]; }
  const content_ptr& at(source_kind kind) const { return contents[static_cast<std::size_t>(kind)]; }
  /// As it is stored; its digest is the revision's.
  boost::json::value text() const;

  friend bool operator==(const usual_revision&, const usual_revision&) = default;
};

/// What runtimes without sources of their own share of unit `bootstrapper`: the usual
/// configuration, manifests and trust bundle, as they are in KCP and as they were rolled out last,
/// and whether the usual pull Secret, which is missing, is removed. A source that is missing counts
/// as it was, until its content is removed.
///
/// The latter are kept as one list (content_store.hpp), so that they fit each other.
///
/// Single executor; what it is made with must outlive it.
class usual_content {
 public:
  /// `trust_at_once`: another trust bundle alone may go to all runtimes at once.
  usual_content(const sources& from, bootstrapper_sources names, source_removal removal,
                bool trust_at_once, content_store& stored)
      : sources_(from),
        names_(std::move(names)),
        removal_(removal),
        trust_at_once_(trust_at_once),
        stored_(stored) {}

  bool used_by(const resource_view& view) const { return shares_content(view, names_); }

  /// Reads what was rolled out last, once, and the contents of missing sources.
  boost::asio::awaitable<k8s::result<void>> load(std::chrono::system_clock::time_point now);

  /// The content in KCP.
  const shared_content& current();

  /// The contents that were rolled out last.
  const content_set& completed() const noexcept { return completed_.contents; }

  /// The digest, for the roll-out, of a runtime with that of unit `bootstrapper`, and without the
  /// usual pull Secret if that was `removed`.
  static std::string revision_of(const std::string& digest, bool removed);
  /// True if the runtime has the usual pull Secret of what was rolled out last.
  bool shares_credentials(const resource_view& view) const {
    return !view.from.pull_secret.empty() && view.from.pull_secret == names_.pull_secret;
  }
  /// True if what was rolled out last is without the usual pull Secret, where nothing uses it.
  bool completed_removal() const noexcept { return completed_.credentials_removed; }

  /// Makes a kept content take the place of the one in KCP; empty: none. Fails if it is not kept.
  boost::asio::awaitable<k8s::result<void>> pin(std::string digest);

  /// The pinned contents; none: those in KCP count.
  std::optional<content_set> pinned() const;
  const std::string& pinned_digest() const noexcept { return pinned_digest_; }

  /// Keeps the current content, so that it can be pinned. Fails if its digest is another one.
  boost::asio::awaitable<k8s::result<void>> keep(std::string digest);
  /// The name of a kept content in the content store, and the digest in such a name; empty: it is
  /// none.
  static std::string kept_name(std::string_view digest);
  static std::string_view kept_digest(std::string_view name);

  /// Stores the content in KCP as rolled out. Fails if its digest is another one.
  boost::asio::awaitable<k8s::result<void>> store(std::string digest);

 private:
  std::string stored_name() const;
  boost::asio::awaitable<k8s::result<void>> write(std::string name, std::string digest);

  const sources& sources_;
  const bootstrapper_sources names_;
  const source_removal removal_;
  const bool trust_at_once_;
  content_store& stored_;
  usual_revision kept_;  ///< of missing sources; null: removed, or none is known
  std::array<k8s::object, usual_kinds.size()> objects_;
  usual_revision revision_;  ///< of `current_`
  shared_content current_;
  usual_revision completed_;
  std::string pinned_digest_;  ///< empty: none
  usual_revision pinned_;
  bool loaded_ = false;
};

/// Leaves a unit with what the runtime has, as long as its turn has not come: the revision in
/// place, or before a write that was cut short, if its content is stored; where there was none, the
/// one that was rolled out last. If there is none, the one that was being written is completed.
void hold(unit_state& unit, const revision_ptr& completed);

}  // namespace rw::bootstrapper
