#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/cache/api_source.hpp"
#include "rw/k8s/objects/failure.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include "tests/unit/k8s/history_participant.hpp"
#include "tests/unit/k8s/samples.hpp"
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rw::k8s::test {

/// What an API server is to its clients, as little of it as an informer can tell apart: objects,
/// versions, a history that can be forgotten, pages of one version, watches. And all that can go
/// wrong, by chance. On one executor.
class model_server final : public truth {
 public:
  struct stored {
    std::string uid;
    std::uint64_t version = 0;
    std::string text;
  };

  model_server(boost::asio::any_io_executor executor, core::clock& clock, chance& by)
      : executor_(std::move(executor)), clock_(clock), chance_(by), happened(clock) {}

  // --- what happens there

  /// One change of one of a few objects, whichever makes sense.
  void change() {
    const auto name = "o" + std::to_string(chance_.draw(40));
    const auto found = objects_.find(name);
    if (found == objects_.end()) {
      put(name, "ADDED", "uid-" + std::to_string(version_ + 1));
    } else if (chance_.likely(0.3)) {
      const auto last = found->second;
      objects_.erase(found);
      record("DELETED", name, configmap(name, std::to_string(++version_), last.uid, "gone"));
    } else {
      put(name, "MODIFIED", found->second.uid);
    }
    wake();
  }

  /// Other resources change, too.
  void others_change() { version_ += 1 + chance_.draw(50); }

  /// Forgets what was before.
  void compact() {
    happened.note("compaction up to " + std::to_string(version_));
    history_.clear();
    compacted_ = version_;
    snapshots_.clear();
    wake();
  }

  /// All connections break, and for a while nobody is there.
  void restart() {
    down_until_ = clock_.now() + chance_.up_to(std::chrono::seconds(chance_.likely(0.5) ? 0 : 20));
    happened.note("restart");
    ++generation_;
    snapshots_.clear();
    if (chance_.likely(0.5)) compact();
    wake();
  }

  /// For a while something before the server ends each watch at once, in one of the ways that front
  /// ends have.
  void front_end_fails() {
    front_end_ = static_cast<front_end>(1 + chance_.draw(4));
    front_end_until_ = clock_.now() + chance_.up_to(std::chrono::minutes(4));
    happened.note("a front end ends each watch");
    ++generation_;
    wake();
  }

  void back_up() {
    happened.note("backup at " + std::to_string(version_));
    backup_ = {version_, objects_};
  }

  /// The storage is set back to the backup, and the versions handed out since are void, as etcd is
  /// restored for Kubernetes (etcd, "Disaster recovery": --bump-revision --mark-compacted).
  void restore() {
    ++version_;
    become_backup();
    compact();
    restart();
  }

  /// The same without a thought for who is watching: versions are given out once more, and of
  /// those that are still to come the server says that they are too large. Between backup and now
  /// a lot must have happened, or else nobody could notice.
  void restore_carelessly() {
    version_ = backup_.version;
    become_backup();
    compact();
    restart();
  }
  void much_else_changes() { version_ += 10'000'000; }

  std::size_t size() const override { return objects_.size(); }
  bool holds(const object& one, bool whole) const override {
    const auto found = objects_.find(std::string(one.name()));
    if (found == objects_.end()) return false;
    const auto& [uid, version, text] = found->second;
    if (one.uid() != uid || one.resource_version() != std::to_string(version)) return false;
    return whole ? one.text() == text : one.text().find("\"data\"") == std::string_view::npos;
  }
  bool existed(const std::string& uid) const override { return uids_.contains(uid); }

 private:
  friend class model_source;

  struct change_record {
    std::uint64_t version;
    std::string line;
  };
  struct snapshot {
    std::uint64_t version = 0;
    std::vector<std::string> objects;
  };
  struct backup {
    std::uint64_t version = 1;
    std::map<std::string, stored> objects;
  };

  enum class front_end : std::uint8_t { none, ends, resets, answers_a_page, redirects };

  front_end before() const {
    return faulty && clock_.now() < front_end_until_ ? front_end_ : front_end::none;
  }
  bool is_down() const { return clock_.now() < down_until_; }

  void become_backup() {
    happened.note("the backup of " + std::to_string(backup_.version) + " is restored at " +
                  std::to_string(version_));
    objects_ = backup_.objects;
  }

  void put(const std::string& name, const char* type, const std::string& uid) {
    // Now and then one that is too large for some.
    const std::string value(chance_.likely(0.1) ? 2000 : chance_.draw(100), 'v');
    const auto text = configmap(name, std::to_string(++version_), uid, value);
    objects_[name] = {uid, version_, text};
    uids_.insert(uid);
    record(type, name, text);
  }

  void record(const char* type, const std::string& name, const std::string& text) {
    happened.note(std::string(type) + " " + name + " at " + std::to_string(version_));
    history_.push_back({version_, event(type, text)});
  }

  void wake() {
    for (auto* each : watching_) each->cancel();
  }

  const boost::asio::any_io_executor executor_;
  core::clock& clock_;
  chance& chance_;
  std::uint64_t version_ = 1;
  std::uint64_t compacted_ = 1;
  std::uint64_t generation_ = 0;
  core::time_point down_until_ = core::time_point::min();
  front_end front_end_ = front_end::none;
  core::time_point front_end_until_ = core::time_point::min();
  backup backup_;
  std::map<std::string, stored> objects_;
  std::set<std::string> uids_;  ///< of all objects that ever were
  std::deque<change_record> history_;
  std::map<std::string, snapshot> snapshots_;  ///< by continue token
  std::set<core::timer*> watching_;

 public:
  bool faulty = true;
  journal happened;
};

/// One client's connection to the model.
class model_source final : public api_source {
 public:
  /// `large`: answers of more objects are too large.
  model_source(model_server& server, std::pair<unsigned, unsigned> version, std::size_t large)
      : server_(server), version_(version), large_(large) {}

  boost::asio::any_io_executor get_executor() const noexcept override { return server_.executor_; }

  boost::asio::awaitable<result<std::pair<unsigned, unsigned>>> server_version() override {
    co_await pause();
    if (server_.is_down()) co_return broken();
    if (server_.faulty && server_.chance_.likely(0.2)) co_return passing_failure();
    co_return version_;
  }

  boost::asio::awaitable<result<std::string>> list_text(resource_type, selection,
                                                        list_options page) override {
    co_await pause();
    if (server_.is_down()) co_return broken();
    if (server_.faulty && server_.chance_.likely(0.15)) co_return passing_failure();
    auto answer = list(page);
    if (answer && server_.faulty && server_.chance_.likely(0.05)) *answer = spoilt(*answer);
    co_await pause();
    co_return answer;
  }

  boost::asio::awaitable<result<opened_watch>> open_watch(resource_type, selection,
                                                          watch_options options,
                                                          watch_sink& into) override {
    co_await pause();
    if (server_.is_down()) co_return broken();
    if (server_.faulty && server_.chance_.likely(0.15)) co_return passing_failure();
    if (auto ended = end_at_once(into)) co_return std::move(*ended);
    auto stop = co_await begin(options, into);
    if (stop) co_return std::move(*stop);
    into.begin();
    const auto alarm = server_.clock_.make_timer(server_.executor_);
    const listening here(server_, *alarm);
    const auto ends = server_.clock_.now() + options.timeout;
    core::duration patience = options.timeout + std::chrono::seconds(5);
    if (options.silence.count() > 0) patience = std::min<core::duration>(patience, options.silence);
    const auto given_up = server_.clock_.now() + patience;
    const auto generation = server_.generation_;
    const bool silent = server_.faulty && (stalls_ || server_.chance_.likely(0.05));
    for (;;) {
      if (server_.generation_ != generation) co_return broken();
      if (silent && server_.clock_.now() >= given_up) co_return failure{.code = errc::timed_out};
      if (!silent) {
        auto next = send_changes(into);
        if (next) co_return std::move(*next);
        if (server_.clock_.now() >= ends) co_return opened_watch();
      }
      alarm->expires_at(silent ? given_up
                               : std::min(ends, server_.clock_.now() + bookmark_interval));
      const bool due = co_await alarm->wait();
      const auto state = co_await boost::asio::this_coro::cancellation_state;
      if (state.cancelled() != boost::asio::cancellation_type::none) throw_cancelled();
      // When it has been quiet for a while; or else at any time.
      const bool tell_version = due || server_.chance_.likely(0.05);
      if (tell_version && !silent && server_.clock_.now() < ends) {
        if (server_.generation_ != generation) co_return broken();
        auto next = send_changes(into);
        if (next) co_return std::move(*next);
        sent_ = std::max(sent_, server_.version_);
        if (!into.take(bookmark(std::to_string(sent_)))) co_return broken();
      }
    }
  }

 private:
  static constexpr auto bookmark_interval = std::chrono::seconds(30);

  /// A watch that is woken by changes.
  class listening {
   public:
    listening(model_server& server, core::timer& alarm) : server_(server), alarm_(alarm) {
      server_.watching_.insert(&alarm);
    }
    ~listening() { server_.watching_.erase(&alarm_); }
    listening(const listening&) = delete;
    listening& operator=(const listening&) = delete;

   private:
    model_server& server_;
    core::timer& alarm_;
  };

  [[noreturn]] static void throw_cancelled() {
    throw boost::system::system_error(boost::asio::error::operation_aborted);
  }

  static failure broken() { return {.code = errc::unreachable, .message = "broken off"}; }
  /// As the API server says it of a resourceVersion that is still to come.
  static failure too_large_version() {
    return {.code = errc::unavailable, .status = 504, .retry_after = std::chrono::seconds(1)};
  }
  static failure gone() { return {.code = errc::gone, .status = 410, .message = "too old"}; }

  failure passing_failure() {
    switch (server_.chance_.draw(7)) {
      case 0:
        return {
            .code = errc::too_many_requests, .status = 429, .retry_after = std::chrono::seconds(2)};
      case 1:
        return {.code = errc::unavailable, .status = 503};
      case 2:
        return {.code = errc::server_error, .status = 500};
      case 3:
        return {.code = errc::timed_out};
      case 4:
        return {.code = errc::unauthorized, .status = 401};
      case 5:
        return {.code = errc::unavailable, .status = 504};
      default:
        return broken();
    }
  }

  boost::asio::awaitable<void> pause() {
    if (!server_.faulty || !server_.chance_.likely(0.5)) co_return;
    const auto alarm = server_.clock_.make_timer(server_.executor_);
    const auto most = server_.chance_.likely(0.1) ? core::duration(std::chrono::seconds(20))
                                                  : std::chrono::seconds(1);
    alarm->expires_at(server_.clock_.now() + server_.chance_.up_to(most));
    const bool due = co_await alarm->wait();
    if (!due) throw_cancelled();
  }

  result<std::string> list(const list_options& page) {
    model_server::snapshot all;
    if (page.continue_token.empty()) {
      all.version = server_.version_;
      for (const auto& [name, each] : server_.objects_) all.objects.push_back(each.text);
    } else {
      const auto found = server_.snapshots_.find(page.continue_token);
      if (found == server_.snapshots_.end()) return gone();
      all = found->second;
    }
    const auto count = page.limit == 0 ? all.objects.size()
                                       : std::min<std::size_t>(page.limit, all.objects.size());
    if (count > large_) return failure{.code = errc::too_large, .status = 200};
    std::string token;
    const auto rest = all.objects.begin() + static_cast<std::ptrdiff_t>(count);
    if (rest != all.objects.end()) {
      token = "t" + std::to_string(server_.chance_.draw(~std::uint64_t{0}));
      server_.snapshots_[token] = {all.version, {rest, all.objects.end()}};
    }
    return test::list(std::to_string(all.version), {all.objects.begin(), rest}, token);
  }

  std::string spoilt(const std::string& text) {
    return server_.chance_.likely(0.5) ? "<html>busy</html>"
                                       : text.substr(0, server_.chance_.draw(text.size()));
  }

  /// What the front end makes of a watch; nothing: it lets it pass.
  std::optional<result<opened_watch>> end_at_once(watch_sink& into) {
    using front_end = model_server::front_end;
    switch (server_.before()) {
      case front_end::none:
        return std::nullopt;
      case front_end::ends:
        into.begin();
        return result<opened_watch>();
      case front_end::resets:
        into.begin();
        return broken();
      case front_end::answers_a_page:
        into.begin();
        deliver("<html>log in</html>\n", into);
        return broken();
      case front_end::redirects:
        break;
    }
    return failure{.code = errc::server_error, .status = 302};
  }

  /// Sends what a watch begins with. A result ends it.
  boost::asio::awaitable<std::optional<result<opened_watch>>> begin(watch_options options,
                                                                    watch_sink& into) {
    if (options.send_initial_events) {
      if (version_ < std::pair(1U, 32U)) co_return failure{.code = errc::invalid, .status = 422};
      std::string text;
      for (const auto& [name, each] : server_.objects_) text += event("ADDED", each.text);
      sent_ = server_.version_;
      // One whose end does not come (antrea-io/antrea#8123).
      stalls_ = server_.faulty && server_.chance_.likely(0.05);
      if (!stalls_) text += bookmark(std::to_string(sent_), true);
      const bool cut = server_.faulty && server_.chance_.likely(0.2);
      if (cut) text.resize(server_.chance_.draw(text.size()));
      if (!deliver(text, into) || cut) co_return broken();
      co_return std::nullopt;
    }
    stalls_ = false;
    sent_ = std::stoull(options.resource_version);
    if (sent_ > server_.version_) co_return too_large_version();
    if (sent_ >= server_.compacted_) co_return std::nullopt;
    if (server_.chance_.likely(0.5)) co_return gone();
    deliver(error_event(410, "Expired"), into);
    co_return broken();
  }

  /// Sends the changes that were not sent yet. A result ends the watch.
  std::optional<result<opened_watch>> send_changes(watch_sink& into) {
    if (sent_ < server_.compacted_) {
      deliver(error_event(410, "Expired"), into);
      return broken();
    }
    for (const auto& each : server_.history_) {
      if (each.version <= sent_) continue;
      if (server_.faulty && server_.chance_.likely(0.03)) return end_badly(each.line, into);
      sent_ = each.version;
      if (!deliver(each.line, into)) return broken();
      if (server_.faulty && server_.chance_.likely(0.05)) return result<opened_watch>();
    }
    return std::nullopt;
  }

  result<opened_watch> end_badly(const std::string& line, watch_sink& into) {
    switch (server_.chance_.draw(5)) {
      case 0:
        deliver(line.substr(0, server_.chance_.draw(line.size())), into);
        break;
      case 1:
        deliver(spoilt(line) + "\n", into);
        break;
      case 2:
        deliver(error_event(500, "InternalError"), into);
        break;
      case 3:
        deliver(error_event(410, "Expired"), into);
        break;
      default:
        return result<opened_watch>();
    }
    return broken();
  }

  /// In portions of any size.
  bool deliver(std::string_view text, watch_sink& into) {
    while (!text.empty()) {
      const auto bytes = std::min<std::size_t>(text.size(), 1 + server_.chance_.draw(700));
      const std::string portion(text.substr(0, bytes));
      if (!into.take(portion)) return false;
      text.remove_prefix(bytes);
    }
    return true;
  }

  model_server& server_;
  const std::pair<unsigned, unsigned> version_;
  const std::size_t large_;
  std::uint64_t sent_ = 0;
  bool stalls_ = false;  ///< the watch under way has brought all but its end
};

}  // namespace rw::k8s::test
