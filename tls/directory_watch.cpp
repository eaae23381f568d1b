#include "rw/tls/directory_watch.hpp"

#include "rw/tls/quiet_period.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <sys/inotify.h>
#include <unistd.h>

namespace rw::tls {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

constexpr int max_symlinks = 40;  // as in the kernel

constexpr std::uint32_t interesting = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE |
                                      IN_MODIFY | IN_DELETE | IN_ATTRIB | IN_DELETE_SELF |
                                      IN_MOVE_SELF | IN_ONLYDIR;

void put_in_front(std::deque<std::string>& parts, const fs::path& path) {
  std::deque<std::string> front;
  for (const auto& part : path.relative_path()) front.push_back(part.string());
  parts.insert(parts.begin(), front.begin(), front.end());
}

}  // namespace

std::set<watched_entry> entries_on_the_way(const std::string& path) {
  std::set<watched_entry> out;
  std::error_code failed;
  const auto whole = fs::absolute(path, failed);
  if (failed) return out;
  std::deque<std::string> parts;
  put_in_front(parts, whole);
  fs::path at = "/";
  for (int symlinks = 0; !parts.empty();) {
    const auto part = parts.front();
    parts.pop_front();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      at = at.parent_path();
      continue;
    }
    const auto next = at / part;
    const auto status = fs::symlink_status(next, failed);
    const bool leads_on = status.type() == fs::file_type::directory;
    if (!leads_on || parts.empty()) out.insert({at.string(), part});
    if (status.type() == fs::file_type::symlink) {
      const auto target = fs::read_symlink(next, failed);
      if (failed || ++symlinks > max_symlinks) break;
      if (target.is_absolute()) at = "/";
      put_in_front(parts, target);
    } else if (leads_on) {
      at = next;
    } else {
      break;
    }
  }
  return out;
}

directory_watch::directory_watch(const asio::any_io_executor& executor)
    : inotify_(executor), timer_(executor) {
  const int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) return;
  boost::system::error_code failed;
  inotify_.assign(fd, failed);
  if (failed) ::close(fd);
}

bool directory_watch::follow(std::span<const std::string> paths) {
  if (!works()) return false;
  std::map<int, std::set<std::string>> wanted;
  bool all = true;
  for (const auto& path : paths) {
    for (const auto& entry : entries_on_the_way(path)) {
      const int watch =
          ::inotify_add_watch(inotify_.native_handle(), entry.directory.c_str(), interesting);
      if (watch < 0) {
        all = false;
      } else {
        wanted[watch].insert(entry.name);
      }
    }
  }
  for (const auto& [watch, names] : names_) {
    if (!wanted.contains(watch)) ::inotify_rm_watch(inotify_.native_handle(), watch);
  }
  names_ = std::move(wanted);
  return all;
}

asio::awaitable<void> directory_watch::wait(std::chrono::steady_clock::time_point end) {
  timer_.expires_at(end);
  if (!works()) {
    boost::system::error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    co_return;
  }
  auto waits = asio::experimental::make_parallel_group(
      inotify_.async_wait(asio::posix::stream_descriptor::wait_read, asio::deferred),
      timer_.async_wait(asio::deferred));
  // Neither carries data, so the second event is not lost: inotify stays readable.
  co_await waits.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
}

bool directory_watch::take() {
  if (!works()) return false;
  bool any = false;
  alignas(inotify_event) char buffer[4096];
  for (;;) {
    const auto size = ::read(inotify_.native_handle(), buffer, sizeof buffer);
    if (size <= 0) return any;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      inotify_event event{};
      std::memcpy(&event, buffer + at, sizeof event);
      const char* name = event.len > 0 ? buffer + at + sizeof event : "";
      any = concerns(event.wd, event.mask, name) || any;
      at += sizeof event + event.len;
    }
  }
}

bool directory_watch::concerns(int watch, std::uint32_t mask, const char* name) const {
  if (mask & IN_Q_OVERFLOW) return true;
  const auto found = names_.find(watch);
  if (found == names_.end()) return false;
  // An event without a name is about the directory itself: moved, deleted, no longer watched.
  return *name == '\0' || found->second.contains(name);
}

asio::awaitable<void> watch_files(asio::any_io_executor executor, std::vector<std::string> paths,
                                  watch_times times, core::logger* log,
                                  std::function<void()> check) {
  using clock = std::chrono::steady_clock;
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await asio::this_coro::throw_if_cancelled(false);
  const auto cancellation = co_await asio::this_coro::cancellation_state;

  directory_watch directories(executor);
  if (!directories.follow(paths)) {
    log->warning("files cannot be watched everywhere, they are compared at intervals",
                 {{"first_file", paths.empty() ? std::string() : paths.front()},
                  {"interval_ms", std::int64_t{times.poll.count()}}});
  }
  check();  // changes between the first load and the watch

  quiet_period burst(times.quiet, times.quiet_limit);
  auto next_poll = clock::now() + times.poll;
  for (;;) {
    const auto end = std::min(next_poll, burst.due().value_or(next_poll));
    co_await directories.wait(end);
    if (cancellation.cancelled() != asio::cancellation_type::none) co_return;
    if (directories.take()) burst.changed(clock::now());
    const auto now = clock::now();
    if (now < std::min(next_poll, burst.due().value_or(next_poll))) continue;
    // Watch first, check then: a change between the two produces another event.
    directories.follow(paths);
    burst.reset();
    next_poll = now + times.poll;
    check();
  }
}

}  // namespace rw::tls
