#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/k8s/cache/watch_decoder.hpp"
#include "rw/k8s/cache/watch_health.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/failure.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace rw::k8s {

struct reflector_options {
  std::uint32_t page = 500;
  bool streaming_list = true;
  std::chrono::seconds watch_timeout = std::chrono::minutes(5);
  std::chrono::milliseconds backoff_base = std::chrono::milliseconds(800);
  std::chrono::milliseconds backoff_limit = std::chrono::seconds(30);
};

/// Decides what an informer asks its server for next: a list, page by page or as a stream, then
/// watches, and what after each failure. Knows no socket and no timer, so that all of it can be
/// tested with literals.
///
/// **What it relies on** (Kubernetes API concepts, "Resource versions"): a list without
/// resourceVersion is at least as new as everything that was seen before it; a watch continues
/// exactly where its resourceVersion is. One request at a time, and each event taken in its order,
/// then make every object go forward only.
///
/// **Resuming.** A watch that ended or broke is begun anew from the last event or bookmark. A list
/// is begun anew where the server does not know that version any more (410), or where the server's
/// versions went backward (its storage was restored): `list_again` says so, or an event that is
/// older than the watch. What such a list brings may be older than what was seen before it. A list
/// is also begun on suspicion, as `watch_health` says: where watches end without having brought
/// anything, are refused, or bring what can't be read.
///
/// **Pauses.** Exponential backoff with full jitter, the only one there is: the source makes one
/// attempt. A watch that lasted, reckoned from its answer's first byte (its own timeout, or the
/// backoff's limit), ends all suspicion. One that broke off sooner but brought something counts as
/// little: a server that closes after each event is asked again within a few seconds, for ever. One
/// that brought nothing counts in full, and so does a list that is followed by no watch.
class reflector {
 public:
  enum class state : std::uint8_t {
    idle,
    probing,    ///< asking for the server's version
    listing,    ///< page by page
    streaming,  ///< a watch that begins with all objects and has not brought all of them yet
    watching,
    waiting,
  };

  /// What is to be done next.
  struct action {
    enum class kind : std::uint8_t { probe, list, watch, wait };

    kind type = kind::probe;
    list_options page = {};
    watch_options watch = {};
    core::duration delay{0};
    bool may_end_early = false;  ///< wait: the server was away, and may be back
    bool anew = false;   ///< list, watch: a listing begins; what one before has told is void
    bool whole = false;  ///< all there is was listed: what was not does not exist any more
    failure error = {};  ///< wait: why a page that came is a failure; no code if it is none
  };

  /// How a watch ended.
  enum class watch_end : std::uint8_t {
    in_order,   ///< by the server, or because `event` said so
    broken,     ///< with a failure
    bad_event,  ///< given up: what came could not be read
  };

  /// What to do with an event.
  enum class verdict : std::uint8_t {
    apply,
    nothing,
    whole,  ///< nothing; and all there is was listed
    stop,   ///< give up the watch; nothing that follows counts
  };

  reflector(reflector_options options, core::random_source random);

  // Each of these tells what came of the action before, and gives the next one.

  action begin();
  action version(unsigned major, unsigned minor);
  /// A page with so many objects was listed, and taken in; `digest` is the sum of theirs. A list
  /// without an end fails: one whose continue token repeats, or whose pages stay empty; `error` of
  /// the action says so.
  action listed(const std::string& resource_version, const std::string& continue_token,
                std::size_t objects, std::uint64_t digest = 0);
  /// Of an object and its version.
  static std::uint64_t digest_of(const object& of, std::string_view resource_version);
  /// The probe, or the page, failed.
  action failed(const failure& error);
  /// `error` says more of a watch that did not end in order, which lasted so long since its answer
  /// began; nothing if there was none.
  action watch_ended(watch_end ending, const failure& error, std::optional<core::duration> lasted);
  /// A streaming list of this server has come to nothing.
  action streams_ruled_out();
  /// The pause has lasted so long; the source may have shown that it is alive before its end.
  action waited(core::duration length);
  /// Whatever the action before was, a list is to follow: what was seen is proven wrong.
  action list_again() { return begin(); }

  /// Each event of the watch that is under way.
  verdict event(const decoded_event& event);

  /// Watches end without having brought anything (`watch_health`).
  bool is_suspect() const noexcept { return health_.is_suspect(); }
  /// The latest watch was one of those.
  bool was_fruitless() const noexcept { return fruitless_; }

  reflector::state state() const noexcept { return state_; }
  /// What the watch goes on from; empty before the first list.
  const std::string& resource_version() const noexcept { return resource_version_; }
  /// The ERROR event that the latest watch ended with, or that it went backward (as `gone`); no
  /// code if neither.
  const failure& error_event() const noexcept { return error_event_; }

 private:
  enum class support : std::uint8_t { unknown, yes, no };
  /// What may follow a pause; `list` begins anew.
  enum class then : std::uint8_t { probe, list, next_page, watch };

  action go_on(then next);
  action list_page(bool anew);
  action watch(bool anew);
  action pause(then next, const failure& error);
  /// Without a pause if nothing failed before.
  action at_once_or_pause(then next, const failure& error);
  action page_failed(const failure& error);
  /// Takes what a watch's end says of the server. Returns true if it ran its time.
  bool judge(watch_end ending, const failure& error, std::optional<core::duration> lasted);
  then list_on_suspicion(bool unreadable);
  void complete();
  void note_event();

  const reflector_options options_;
  core::random_source random_;
  core::backoff backoff_;

  enum state state_ = state::idle;
  then after_wait_ = then::list;
  support streaming_ = support::unknown;
  std::uint32_t page_;       ///< objects; fewer than asked for where they are large
  bool paged_once_ = false;  ///< the next listing is not to be a stream
  bool at_once_ = false;     ///< this listing is not done in pages

  std::string continue_token_;
  std::string listed_version_;              ///< of the first page
  std::unordered_set<std::size_t> tokens_;  ///< hashes, of this listing's pages
  unsigned empty_pages_ = 0;                ///< in a row
  std::string resource_version_;
  failure error_event_;
  std::chrono::seconds asked_{0};  ///< the watch's timeout
  bool brought_ = false;           ///< the watch has, an event or a bookmark
  bool progressed_ = false;        ///< the watch brought something that need not be asked for again
  bool fruitless_ = false;
  watch_health health_;
  bool on_suspicion_ = false;              ///< this list is
  bool unreadable_ = false;                ///< with `on_suspicion_`: because of an event
  std::uint64_t listing_ = 0;              ///< digest of what this listing has brought
  std::optional<std::uint64_t> contents_;  ///< of the last complete list, unless events followed
};

}  // namespace rw::k8s
