#pragma once

#include "k8s/client/client.hpp"
#include "reactors/bootstrapper/desired_set.hpp"

#include <boost/asio/awaitable.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rw::bootstrapper {

/// The contents of each source that a runtime has taken, kept in the control plane for all
/// runtimes: one Secret for each source, in a namespace that holds nothing else. It is what a unit
/// falls back to when its source becomes invalid, is deleted, or is rejected by a runtime.
///
/// A Secret holds the newest such content and, as far as both fit into its 1 MiB, the one before
/// it, since a runtime may reject in the midst what others have taken.
///
/// Assumes that nobody else writes there; a conflict reads again. Single executor.
class last_good {
 public:
  using contents = std::vector<content_ptr>;  ///< the newest first

  /// `kcp` must outlive the store.
  last_good(k8s::client& kcp, std::string ns) : kcp_(kcp), ns_(std::move(ns)) {}

  /// The stored contents of a source, which is named as for people.
  boost::asio::awaitable<k8s::result<contents>> load(std::string source);

  /// Stores a content as the newest. Nothing is written where it is so already, or, with
  /// `absent_only`, where there is any.
  boost::asio::awaitable<k8s::result<void>> store(std::string source, content_ptr added,
                                                  bool absent_only = false);

  /// Deletes the contents of sources that are not in use.
  boost::asio::awaitable<k8s::result<void>> collect(std::function<bool(std::string_view)> is_used);

 private:
  struct entry {
    std::string resource_version = {};  ///< empty: the Secret does not exist
    contents stored = {};
  };

  boost::asio::awaitable<k8s::result<void>> fetch(std::string source);

  k8s::client& kcp_;
  const std::string ns_;
  std::unordered_map<std::string, entry> entries_;
};

}  // namespace rw::bootstrapper
