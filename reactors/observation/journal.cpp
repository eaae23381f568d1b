#include "rw/reactors/observation/journal.hpp"

#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/require.hpp>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <fcntl.h>
#include <fstream>
#include <mutex>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace rw::observation {
namespace {

namespace asio = boost::asio;

constexpr auto write_patience = std::chrono::milliseconds(100);
constexpr auto delivery_delay = std::chrono::milliseconds(100);
constexpr auto write_pause = std::chrono::milliseconds(5);  // from begin to begin
constexpr auto end_patience = std::chrono::seconds(1);      // of real time
constexpr auto never = core::time_point::max();
constexpr core::duration first_pause = std::chrono::seconds(1);
constexpr core::duration last_pause = std::chrono::minutes(1);
constexpr std::size_t most_buffered = 4u << 20;
constexpr std::size_t least_compacted = 1u << 20;
constexpr std::size_t most_read = 256u << 20;

std::string text_of(int error) {
  return std::generic_category().message(error);
}

/// Returns why not; empty: it did.
std::string read_file(const std::string& file, std::string& into) {
  struct ::stat status = {};
  if (::stat(file.c_str(), &status) != 0) return text_of(errno);
  if (!S_ISREG(status.st_mode)) return "it is no regular file";
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > most_read) return "it is larger than " + std::to_string(most_read) + " bytes";
  into.resize(size);
  std::ifstream in(file, std::ios::binary);
  in.read(into.data(), static_cast<std::streamsize>(size));
  return in ? "" : "it cannot be read";
}

core::counter& count_writes(core::metrics& r, const char* result) {
  return core::make_counter(r, "rw_observation_journal_writes_total",
                            "Number of writes of the journal", {{"outcome", result}});
}

}  // namespace

/// Shared with the thread that writes, which may end after the journal has.
struct journal::disk {
  disk(std::string of, std::string boot) : file(std::move(of)), boot_id(std::move(boot)) {}
  ~disk() { close(); }

  /// Returns why not; empty: it did. Then the file is removed, so that the next start knows.
  std::string perform(task kind, std::string bytes) {
    std::string error;
    if (kind == task::compact) error = compact(bytes);
    if (kind == task::restore) discard();
    if (error.empty()) error = kind == task::append ? append(bytes) : replace(bytes);
    if (!error.empty()) discard();
    return error;
  }

  std::string compact(std::string& bytes) {
    auto error = read_file(file, bytes);
    const auto content = decode_journal(bytes, boot_id);
    if (error.empty()) error = content.reason;
    bytes = encode_journal(content, boot_id);
    return error;
  }

  std::string replace(std::string_view bytes) {
    close();
    size = 0;
    const auto temporary = file + ".new";
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    auto error = fd < 0 ? text_of(errno) : append(bytes);
    if (error.empty() && ::rename(temporary.c_str(), file.c_str()) != 0) error = text_of(errno);
    if (!error.empty()) ::unlink(temporary.c_str());
    return error;
  }

  std::string append(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = ::write(fd, bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) return text_of(errno);
      bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      size += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    }
    return {};
  }

  void discard() {
    close();
    if (::unlink(file.c_str()) != 0) static_cast<void>(::truncate(file.c_str(), 0));
  }

  void close() {
    if (fd >= 0) ::close(std::exchange(fd, -1));
  }

  const std::string file;
  const std::string boot_id;
  int fd = -1;
  std::size_t size = 0;
  std::mutex guard;
  std::condition_variable changed;
  bool idle = true;
  bool abandoned = false;  ///< the executor may no longer exist
};

journal::journal(asio::any_io_executor executor, std::string file, journal_environment environment)
    : executor_(std::move(executor)),
      file_(std::move(file)),
      environment_(std::move(environment)),
      writes_(count_writes(environment_.metrics, "written")),
      failures_(count_writes(environment_.metrics, "failed")),
      bytes_(core::make_gauge(environment_.metrics, "rw_observation_journal_bytes",
                              "Size of the journal's file in bytes")),
      series_(std::to_string(environment_.random())),
      failed_(file_.empty()),
      timer_(environment_.clock.make_timer(executor_)),
      advanced_(executor_),
      disk_(std::make_shared<disk>(file_, environment_.boot_id)) {
  if (environment_.blocking || file_.empty()) return;
  auto own = std::make_shared<asio::io_context>(1);
  environment_.blocking =
      asio::require(own->get_executor(), asio::execution::outstanding_work.tracked);
  thread_ = std::thread([own = std::move(own)] { own->run(); });
}

journal::~journal() {
  std::unique_lock lock(disk_->guard);
  const auto idle = [this] { return disk_->idle; };
  if (thread_.joinable()) disk_->changed.wait_for(lock, end_patience, idle);
  disk_->abandoned = true;
  const bool hangs = !disk_->idle;
  lock.unlock();
  environment_.blocking = {};  // ends the thread, after its write
  if (!thread_.joinable()) return;
  if (hangs) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

journal_content journal::load() {
  journal_content content{.series = series_};
  if (file_.empty()) return content;
  std::string bytes;
  content.reason = read_file(file_, bytes);
  if (content.reason.empty()) content = decode_journal(bytes, environment_.boot_id);
  was_read_ = content.complete || content.old_format;
  if (content.complete) {
    series_ = content.series;
  } else if (content.reason != text_of(ENOENT)) {
    environment_.log.warning("journal not complete", {{"file", file_}, {"reason", content.reason}});
  }
  content.series = series_;
  return content;
}

std::string_view journal::state() const noexcept {
  if (file_.empty()) return "none";
  if (failed_) return "failed";
  return was_read_ ? "read" : "missing";
}

asio::awaitable<void> journal::run() {
  while (!file_.empty()) {
    timer_->expires_at(awake_at_);
    const bool due = co_await timer_->wait();
    if (!due) continue;
    awake_at_ = never;
    poll();
  }
}

asio::awaitable<void> journal::flush() {
  const auto until = begin_ + buffer_.size();
  if (!buffer_.empty()) {
    buffered_at_ = std::min(buffered_at_, environment_.clock.now());
    paused_until_ = core::time_point::min();
    post(&journal::poll);  // `run` may have ended
  }
  bool waits = true;
  while (waits && written() < until) waits = co_await advanced_.wait();
}

/// When `poll` is to be called next.
void journal::arm() {
  auto at = overdue_at();
  if (!busy_) at = std::min(at, paused_until_ > buffered_at_ ? paused_until_ : due_);
  if (failed_ && rewrite_ && !busy_) at = retry_at_;
  if (at >= awake_at_) return;
  awake_at_ = at;
  timer_->cancel();
}

/// When the oldest record that is waited for was to be written.
core::time_point journal::overdue_at() const {
  const auto oldest = std::min(writing_at_, buffered_at_);
  const bool none = failed_ || oldest == never;
  return none ? never : oldest + write_patience;
}

journal::position journal::appended(std::size_t buffered) {
  const auto position = begin_ + buffered;
  if (buffered > most_buffered) {
    rewrite_ = true;
    fail("too many records wait");
  }
  if (failed_ && rewrite_) {
    drop();
  } else if (due_ == never) {
    due_ = environment_.clock.now() + delivery_delay;
    arm();
  }
  return position;
}

journal::position journal::appended_at_once(std::size_t buffered) {
  const auto position = appended(buffered);
  if (buffer_.empty() || buffered_at_ != never) return position;
  buffered_at_ = environment_.clock.now();
  if (buffered_at_ >= paused_until_) post(&journal::poll);
  arm();
  return position;
}

void journal::post(void (journal::*call)()) {
  asio::post(executor_, [call, self = std::weak_ptr(self_)] {
    if (const auto found = self.lock()) ((*found)->*call)();
  });
}

void journal::poll() {
  if (!busy_) begin_write();
  if (environment_.clock.now() >= overdue_at()) fail("a write takes too long");
  arm();
}

void journal::begin_write() {
  const auto now = environment_.clock.now();
  const bool buffered = (buffered_at_ != never && paused_until_ <= now) || due_ <= now;
  if (rewrite_ ? now < retry_at_ : !buffered) return;
  auto kind = task::append;
  std::string bytes;
  if (rewrite_) {
    kind = failed_ ? task::restore : task::replace;
    const record_writer to(bytes);
    to.header(environment_.boot_id, series_);
    environment_.write_all(to);
    rewrite_ = false;
  } else if (size_ > least_compacted && size_ >= 2 * compacted_) {
    kind = task::compact;
  } else {
    bytes = buffer_;
  }
  if (kind != task::compact) {
    writing_at_ = std::min(buffered_at_, now);
    drop();
    writing_ = begin_;
  }
  paused_until_ = now + write_pause;
  busy_ = true;
  disk_->idle = false;
  asio::post(environment_.blocking, [kind, bytes = std::move(bytes), on = disk_,
                                     self = std::weak_ptr(self_), back = executor_]() mutable {
    auto error = on->perform(kind, std::move(bytes));
    const std::lock_guard lock(on->guard);
    on->idle = true;
    on->changed.notify_all();
    if (on->abandoned) return;
    asio::post(back, [kind, error = std::move(error), size = on->size, self = std::move(self)] {
      if (const auto found = self.lock()) (*found)->end_write(kind, error, size);
    });
  });
}

void journal::end_write(task ended, const std::string& error, std::size_t size) {
  busy_ = false;
  writing_at_ = never;
  if (error.empty()) {
    writes_.Increment();
    failed_writes_ = 0;
    size_ = size;
    if (ended != task::append) compacted_ = size;
    bytes_.Set(static_cast<double>(size));
    // Records that were dropped meanwhile are still missing.
    if (!rewrite_) {
      written_ = failed_ ? written() : writing_;
      failed_ = false;
      notify();
    }
  } else {
    failures_.Increment();
    rewrite_ = true;
    retry_at_ = environment_.clock.now() + core::doubled(first_pause, last_pause, failed_writes_++);
    fail(error);
  }
  poll();
}

/// Forgets the buffered records: a write has them, or will have what they say.
void journal::drop() {
  begin_ += buffer_.size();
  buffer_.clear();
  buffered_at_ = never;
  due_ = never;
}

void journal::fail(std::string_view reason) {
  environment_.log.limited(log_limit_, core::log_level::error, "journal not written",
                           {{"file", file_}, {"reason", reason}});
  if (!std::exchange(failed_, true)) post(&journal::notify);
}

void journal::notify() {
  if (environment_.on_written) environment_.on_written();
  advanced_.wake_all();
}

}  // namespace rw::observation
