#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/http/client.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/client/fence.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw::k8s {

class write_preview;

struct client_options {
  std::string name = "kube";  ///< in logs and as the metrics' label `client`
  /// The program's name, for the server's log and audit; must be set.
  std::string user_agent = {};
  /// The owner of the fields of writes where a call names none; must be set. With another program's
  /// name an apply removes what that has applied (Kubernetes, "Server-Side Apply").
  std::string field_manager = {};

  std::chrono::milliseconds connect = std::chrono::seconds(10);
  std::chrono::milliseconds request = std::chrono::seconds(30);  ///< one attempt
  std::chrono::milliseconds deadline = std::chrono::minutes(2);  ///< a call with all its attempts
  std::size_t connections = 8;             ///< at once, beside those that watches fill up
  std::size_t response_bytes = 64u << 20;  ///< of one answer; watches apart

  /// Over HTTP/1.1 a watch that names no silence of its own is broken after so long without a byte,
  /// since a proxy may keep its side open when the server has gone. Servers send a bookmark each
  /// minute. With HTTP/2 the connection's PING does it.
  std::chrono::milliseconds watch_silence = std::chrono::seconds(150);

  /// Further attempts after a failure that says that nothing was done (429 and 503 with
  /// Retry-After, no connection, a connection that did not take the request), and for requests that
  /// change nothing (get, list, discovery) after any passing failure (no answer in time, a
  /// connection that closed, 429, 5xx). A write of which a byte was sent is not repeated otherwise.
  /// With backoff and full jitter, beginning at `retry_base`, after the time that Retry-After asks
  /// for; one beyond `retry_limit` or the call's deadline is not waited for but told as
  /// `failure::retry_after`. A watch has its backoff in its informer: only one that a connection at
  /// its end did not take is sent again here.
  unsigned retries = 4;
  std::chrono::milliseconds retry_base = std::chrono::milliseconds(100);
  std::chrono::milliseconds retry_limit = std::chrono::seconds(10);

  /// Token bucket for attempts, watches included; 0: no limit. Who asks for more than comes waits,
  /// or fails as timed_out where that would take longer than `connect` and `request`.
  double requests_per_second = 0;
  unsigned burst = 10;
};

/// All of it must outlive the client.
struct client_environment {
  core::clock& clock;
  core::optional_watchdog watchdog = {};
  core::logger& log;
  core::metrics& metrics;
  core::random_source (*make_random)() = core::make_random_source;  ///< of jitter
};

/// What bounds one call.
struct call_options {
  /// From the call to its result, over all attempts; 0: the client's.
  std::chrono::milliseconds deadline{0};
  bool retry = true;  ///< false: its caller has a backoff of its own
  /// Gets the texts that the server warns with, which are not logged then; must outlive the call.
  std::vector<std::string>* warnings = nullptr;
  /// Gets the server's time of the response, in whole seconds, if the response has a valid Date
  /// field; must outlive the call.
  std::optional<std::chrono::system_clock::time_point>* date = nullptr;
};

/// What a list or watch is to contain.
struct selection {
  std::string ns = {};  ///< empty: all namespaces, or a cluster-scoped resource
  std::string labels = {};
  std::string fields = {};
  bool metadata_only = false;  ///< as PartialObjectMetadata

  friend bool operator==(const selection&, const selection&) = default;
};

struct list_options {
  std::uint32_t limit = 0;  ///< objects of one page; 0: all at once
  std::string continue_token = {};
  std::string resource_version = {};
  std::string resource_version_match = {};
};

struct watch_options {
  std::string resource_version = {};                       ///< empty: begin with all objects
  std::chrono::seconds timeout = std::chrono::minutes(5);  ///< the server ends it then
  bool bookmarks = true;
  bool send_initial_events = false;  ///< streaming list (Kubernetes 1.32 and later)
  /// The longest time without a byte; 0: with HTTP/1.1 the client's, otherwise none. The whole is
  /// limited to 5 s beyond `timeout`.
  std::chrono::milliseconds silence{0};
};

struct write_options {
  std::string field_manager = {};
  bool force = false;  ///< only of an apply: it takes fields over from other managers
  bool dry_run = false;
  std::string subresource = {};  ///< such as "status"
  /// What happens to unknown fields: "Strict" (400), "Warn", "Ignore"; empty: the server's default,
  /// a warning (Kubernetes API concepts, "Field validation").
  std::string field_validation = {};
};
using apply_options = write_options;

struct delete_options {
  std::string uid = {};               ///< precondition
  std::string resource_version = {};  ///< precondition
  std::string propagation = {};       ///< "Foreground", "Background", "Orphan"; empty: the default
  std::optional<std::int64_t> grace_period_seconds = {};
  bool dry_run = false;
};

enum class patch_type : std::uint8_t { merge, json, strategic_merge };

/// A group version's resource, as discovery tells it.
struct discovered_resource {
  resource_type type;
  std::vector<std::string> verbs;
  bool has_status = false;  ///< a subresource of that name: writes to it leave the generation
};

/// Gets a watch's bytes as they come, on the client's executor. They are pieces of lines, each line
/// one event as JSON (Kubernetes API concepts, "Efficient detection of changes").
using watch_sink = http::body_sink;

/// What the error that an exchange ended with means, such as that of watch_sink::end.
errc errc_of(boost::system::error_code error) noexcept;

/// A watch that goes on: ended when it goes. It may outlive its client's `close`, which ends it.
using opened_watch = std::unique_ptr<http::opened_exchange>;

/// A client for one API server, over one pool of connections (http::client): HTTP/2 where the
/// server offers it, otherwise HTTP/1.1, where each watch has a connection for itself. Credentials
/// are read again when their files change, and once more after a 401. What the server warns of
/// (`Warning` fields) is logged, each text once.
///
/// An object of a namespaced kind that names no namespace lies in the configuration's, as with
/// kubectl. Requests whose object has no name are not sent (`errc::bad_request`).
///
/// Metrics, with the label `client`, which clients may share: `rw_kube_requests_total{verb,code}`
/// (attempts; code is the status, or what there was instead),
/// `rw_kube_request_duration_seconds{verb}` (watches apart), `rw_kube_retries_total` and
/// `rw_kube_rate_limited_seconds_total`. A series is made when it is first needed.
///
/// A client is a handle: a copy shares its connections, its discovery and its rate limit, and costs
/// nothing. `fenced`, `dry` and `previewing` give copies that cannot write past a fence, or not at
/// all; there is no way back from such a copy, and a second `fenced` or `dry` is a
/// std::logic_error.
///
/// Objects are JSON values; typed views of some kinds stand in k8s/objects/types.hpp. Everything
/// happens on one executor (thread or strand); two threads in it at once end the process
/// (core/thread_owner.hpp). Arguments are taken by value, so that a call may be
/// kept and awaited later. A call ends by its deadline, by an answer, by a failure that will not
/// pass, or with an exception of Asio's when its coroutine is cancelled.
class client {
 public:
  using value = boost::json::value;

  /// Throws boost::system::system_error that names the setting if `configuration` can't be used,
  /// and std::invalid_argument if the options name no user agent or field manager.
  client(boost::asio::any_io_executor executor, config configuration, client_options options,
         client_environment environment);
  ~client();
  client(const client&);
  client& operator=(const client&);

  /// Returns a copy whose writing requests go only while the fence is open: it is asked at each
  /// attempt, and whenever bytes of one are handed to the socket. Null: as it is.
  client fenced(std::shared_ptr<const fence> writes) const;
  /// Returns a copy whose writes are tried only (Kubernetes API concepts, "Dry-run") while `is_dry`
  /// is true, so that nothing is persisted; writing requests of `raw` are not sent then
  /// (`errc::bad_request`). Null: as it is.
  client dry(std::shared_ptr<const bool> is_dry) const;
  /// Returns a copy whose writes are tried only, as those of a dry one, and collected, each with
  /// the object before it, which takes a further read. Dry runs that the caller asks for, and
  /// `remove_all`, are not collected.
  client previewing(std::shared_ptr<write_preview> into) const;
  bool is_dry() const noexcept { return preview_ || (dry_ && *dry_); }
  /// True for copies of one client, whatever they may write.
  bool shares_connections_with(const client& other) const noexcept { return impl_ == other.impl_; }

  boost::asio::awaitable<result<value>> get(resource_type type, object_key key,
                                            bool metadata_only = false, call_options bounds = {});
  /// Gets a part of an object, such as "scale", of whatever kind that has.
  boost::asio::awaitable<result<value>> get_subresource(resource_type type, object_key key,
                                                        std::string subresource,
                                                        call_options bounds = {});

  /// One page, with `items`, `metadata.resourceVersion` and `metadata.continue`.
  boost::asio::awaitable<result<value>> list(resource_type type, selection objects,
                                             list_options page = {}, call_options bounds = {});
  /// All objects, in pages of 500 that are put together: those of one resourceVersion, that of the
  /// list. The pages begin again, once, if the server has forgotten that version meanwhile (410).
  /// Fails (`errc::bad_response`) if a continue token repeats, or if 1,000 pages in a row are
  /// empty.
  boost::asio::awaitable<result<value>> list_all(resource_type type, selection objects,
                                                 call_options bounds = {});
  /// The same as `list`, as the server wrote it.
  boost::asio::awaitable<result<std::string>> list_text(resource_type type, selection objects,
                                                        list_options page = {},
                                                        call_options bounds = {});

  /// Feeds `into` from the server's acceptance to the watch's end. With HTTP/2 it returns as soon
  /// as the server has accepted the watch, which goes on until the sink's `end` or until the result
  /// goes: many watches of many clusters then cost no coroutines. A null result: the watch has
  /// ended already, in order or because `into` had enough; with HTTP/1.1 it always has. A watch
  /// that outlasts its own timeout by 5 s is broken. `into` must live until the end.
  boost::asio::awaitable<result<opened_watch>> open_watch(resource_type type, selection objects,
                                                          watch_options options, watch_sink& into);

  /// False once `rule_out_streaming_lists` was called: a streaming list of the server has come to
  /// nothing. For whoever asks for such lists.
  bool streams_lists() const noexcept;
  void rule_out_streaming_lists() noexcept;

  boost::asio::awaitable<result<value>> create(resource_type type, value object,
                                               write_options options = {},
                                               call_options bounds = {});
  /// Replaces the object; one with a resourceVersion only as long as it is at that.
  boost::asio::awaitable<result<value>> update(resource_type type, value object,
                                               write_options options = {},
                                               call_options bounds = {});
  boost::asio::awaitable<result<value>> patch(resource_type type, object_key key, patch_type format,
                                              value change, write_options options = {},
                                              call_options bounds = {});
  /// Server-side apply; the object carries apiVersion, kind and metadata.name.
  boost::asio::awaitable<result<value>> apply(resource_type type, value object,
                                              apply_options options = {}, call_options bounds = {});
  /// The object as it was, or a Status.
  boost::asio::awaitable<result<value>> remove(resource_type type, object_key key,
                                               delete_options options = {},
                                               call_options bounds = {});
  boost::asio::awaitable<result<value>> remove_all(resource_type type, selection objects,
                                                   delete_options options = {},
                                                   call_options bounds = {});

  /// The resources of one group version, such as "apps/v1" (`/apis/apps/v1`); not_found if it is
  /// not served.
  boost::asio::awaitable<result<std::vector<discovered_resource>>> resources(
      std::string api_version);
  /// The versions that a group is served in, the preferred one first; empty if the list of groups
  /// was read and lacks it.
  boost::asio::awaitable<result<std::vector<std::string>>> versions(std::string group);
  /// Finds the resource of a kind by discovery. Answers are kept for ten minutes, misses not.
  boost::asio::awaitable<result<resource_type>> find(group_version_kind gvk);
  /// The server's version, such as {1, 32}.
  boost::asio::awaitable<result<std::pair<unsigned, unsigned>>> server_version(
      call_options bounds = {});

  /// Any other request, such as a probe of /readyz; the answer's body as it is. `beside`: further
  /// header fields.
  boost::asio::awaitable<result<std::string>> raw(std::string method, std::string target,
                                                  std::string content_type, std::string body,
                                                  call_options bounds = {},
                                                  http::fields beside = {});

  /// Uses no open connection for further requests.
  void retire();

  /// Cancels what is under way (it ends with `errc::shut_down`), closes all connections, and waits
  /// for that. To be awaited once, before the last copy goes.
  boost::asio::awaitable<void> close();

  const config& configuration() const noexcept;
  const std::string& name() const noexcept;
  boost::asio::any_io_executor get_executor() const noexcept;
  core::clock& clock() const noexcept;

 private:
  class implementation;

  std::shared_ptr<implementation> impl_;
  std::shared_ptr<const fence> writes_;
  std::shared_ptr<const bool> dry_;
  std::shared_ptr<write_preview> preview_;
};

}  // namespace rw::k8s
