#pragma once

#include "rw/core/task_group.hpp"

#include "sandbox.hpp"
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

namespace rw::conformance {

/// A watch that is under way, from its construction to its destruction.
class watching {
 public:
  struct event {
    std::string type;  ///< ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
    json object;
  };

  watching(sandbox& in, const k8s::resource_type& type, k8s::selection what,
           k8s::watch_options options = {});
  /// From the version of a list, or of an object, without bookmarks.
  watching(sandbox& in, const k8s::resource_type& type, k8s::selection what, const json& since);
  ~watching();
  watching(const watching&) = delete;
  watching& operator=(const watching&) = delete;

  /// The next event, which must come in time.
  event next();
  /// The next event must be this; gives its object.
  json expect(std::string_view type, std::string_view name);
  /// Waits until the server has ended the watch, and says how; events may still be taken.
  k8s::result<void> end();
  /// The next event if one came already.
  std::optional<event> poll();

 private:
  class lines;
  boost::asio::awaitable<void> run(k8s::resource_type type, k8s::selection what,
                                   k8s::watch_options options);

  host& here_;
  k8s::client& api_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::deque<event> events_;
  std::optional<k8s::result<void>> end_;
  std::unique_ptr<lines> sink_;
  core::task_group task_;
};

}  // namespace rw::conformance
