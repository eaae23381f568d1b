#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/client/client.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace rw {

/// A content of many runtimes, as it was at some time.
struct content {
  std::string digest = {};
  boost::json::value value = {};
};
using content_ptr = std::shared_ptr<const content>;

content_ptr make_content(boost::json::value value);
std::string digest_of(const boost::json::value& value);

/// Largest stored content: an API server takes no larger Secret.
inline constexpr std::size_t source_bytes = (1u << 20) - 4096;
/// Says that a content is too large to be stored, with its size; none: it is not.
std::optional<std::string> size_error(const boost::json::value& value);

/// True if asking again soon is useless: a content, its namespace or the right to it is missing.
inline bool is_lost(const k8s::failure& error) {
  return k8s::is_permanent(error) || error.is(k8s::errc::not_found);
}

/// Contents that runtimes have taken, kept in the control plane for all runtimes, by names such as
/// their source's, in a namespace that holds nothing else. It is what a runtime falls back to when
/// the source becomes invalid, is deleted, is rejected by the runtime, or waits for its turn in a
/// roll-out.
///
/// A name's Secret lists the newest content and the one before it, since a runtime may reject in
/// the midst what others have taken. `by_digest`, each content is stored once, in a Secret of its
/// own under its digest, and so is each part of one that is stored in parts; the list has the
/// digests. For one release each list has the contents as well, as far as they fit into its 1 MiB:
/// as the previous release reads and writes them. One that the previous release has written is read
/// by that form.
///
/// Assumes that no other client writes there; a conflict reads again, and so does `reload`.
/// Single executor.
class content_store {
 public:
  using contents = std::vector<content_ptr>;  ///< the newest first
  using time_point = std::chrono::system_clock::time_point;

  /// `prefix`: of the Secrets' names. `kcp` must outlive the store.
  content_store(k8s::client& kcp, std::string ns, std::string prefix, bool by_digest = false)
      : kcp_(kcp), ns_(std::move(ns)), prefix_(std::move(prefix)), by_digest_(by_digest) {}

  /// Returns the stored contents of a source, which is named as for people.
  boost::asio::awaitable<k8s::result<contents>> load(std::string source);

  /// Stores a content as the newest. Nothing is written where it is so already. One that is too
  /// large fails, and what is stored stays.
  /// `in_parts`: an object, of which each member that is an object is a content.
  boost::asio::awaitable<k8s::result<void>> store(std::string source, content_ptr added,
                                                  bool in_parts = false);

  /// Returns the content that is stored under a digest; null: none is.
  boost::asio::awaitable<k8s::result<content_ptr>> find(std::string digest);

  /// Stores a content under its digest, unless it is there.
  boost::asio::awaitable<k8s::result<void>> keep(content_ptr added);

  /// Writes the lists again whose Secrets are gone, such as with their namespace, once it is back.
  boost::asio::awaitable<void> restore();

  /// A content's name for `collect`.
  static std::string name_of(std::string_view digest) { return "content " + std::string(digest); }

  /// Makes the next use of a source read its Secret again: another client may have changed it.
  void reload(const std::string& source) { entries_.erase(source); }

  /// Records with a source's content since when the source does not exist: `at`, unless an earlier
  /// time is recorded; none: it exists, or nobody asks. Nothing is recorded without a content.
  boost::asio::awaitable<k8s::result<void>> note_missing(std::string source,
                                                         std::optional<time_point> at);

  /// True if a content of a source that was loaded is older than those that are listed: it was
  /// listed before them, as one of the last 32. Else it is newer, or not known.
  bool is_earlier(const std::string& source, std::string_view digest) const;

  /// Returns the recorded time, of a source that was loaded.
  std::optional<time_point> missing_since(const std::string& source) const;

  /// Deletes the lists whose names are not in use, and the contents that neither a list nor
  /// `is_used` names (`name_of`), if it was so in each earlier call since `unused_for` or longer
  /// before `now`: what was written or kept meanwhile, or is about to be referred to, stays. A new
  /// store begins to count anew.
  boost::asio::awaitable<k8s::result<void>> collect(std::function<bool(std::string_view)> is_used,
                                                    core::time_point now,
                                                    core::duration unused_for);

 private:
  struct entry {
    std::string resource_version = {};  ///< empty: the Secret does not exist
    contents stored = {};
    std::vector<std::string> earlier = {};  ///< digests that were listed, the latest first
    bool in_parts = false;
    bool outdated = false;  ///< as the previous release has written it
    bool gone = false;      ///< the Secret does not exist any more
    std::optional<time_point> missing_since = {};
  };

  /// A Secret that is not in use.
  struct unused_secret {
    std::string name = {};  ///< of the list or content, for `is_used`
    std::string resource_version = {};
    core::time_point since = {};
  };

  boost::asio::awaitable<k8s::result<void>> fetch(std::string source);
  boost::asio::awaitable<k8s::result<void>> write(std::string source);
  boost::asio::awaitable<k8s::result<content_ptr>> read(std::string digest);
  void note_gone();
  void forget(const std::string& name);
  boost::asio::awaitable<k8s::result<content_ptr>> unfold(boost::json::value listed);
  boost::asio::awaitable<k8s::result<void>> keep_parts(contents of, bool in_parts);
  std::string secret_name(const std::string& source) const;
  std::string content_name(std::string_view digest) const;

  k8s::client& kcp_;
  const std::string ns_;
  const std::string prefix_;
  const bool by_digest_;
  std::unordered_map<std::string, entry> entries_;
  std::unordered_set<std::string> kept_;  ///< digests that are known to be stored
  std::unordered_map<std::string, std::weak_ptr<const content>> loaded_;  ///< by digest
  std::unordered_map<std::string, unused_secret> unused_;  ///< by Secret, as of the last collection
};

}  // namespace rw
