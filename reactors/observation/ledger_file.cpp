#include "reactors/observation/ledger_file.hpp"

#include "core/wake.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

namespace rw::observation {
namespace {

namespace asio = boost::asio;

constexpr std::size_t slice = 4096;  // objects; half a millisecond
constexpr int share = 100;           // the ledger takes one part of so many of the time
constexpr core::duration longest_pause = std::chrono::minutes(1);
constexpr auto patience = std::chrono::seconds(1);  // with the disk, at the end; of real time

core::counter& writes(core::metrics& r, const char* outcome) {
  return core::make_counter(r, "rw_observation_ledger_writes_total",
                            "Number of writes of the ledger", {{"outcome", outcome}});
}

}  // namespace

/// Shared with the thread that writes, which may end after the ledger_file has.
struct ledger_file::disk {
  std::mutex guard;
  std::condition_variable changed;
  bool idle = true;
  bool abandoned = false;  ///< the executor may no longer exist
};

/// A write of the file, of the executor alone. It may end after its ledger_file has.
struct ledger_file::write {
  explicit write(const asio::any_io_executor& executor) : ended(executor) {}

  std::function<void(const std::string& error)> on_end;  ///< none: nobody waits
  core::wake ended;
};

ledger_file::ledger_file(asio::any_io_executor executor, std::string file,
                         const observed_objects& objects, ledger_environment environment)
    : executor_(std::move(executor)),
      file_(std::move(file)),
      objects_(objects),
      in_(std::move(environment)),
      written_(writes(in_.metrics, "written")),
      failed_(writes(in_.metrics, "failed")),
      disk_(std::make_shared<disk>()) {}

ledger_file::~ledger_file() {
  if (write_) write_->on_end = {};
  std::unique_lock lock(disk_->guard);
  if (thread_.joinable()) disk_->changed.wait_for(lock, patience, [this] { return disk_->idle; });
  disk_->abandoned = true;
  const bool hangs = !disk_->idle;
  lock.unlock();
  if (!thread_.joinable()) return;
  if (hangs) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

ledger_content ledger_file::load() {
  if (file_.empty()) return {};
  auto found = read_ledger(file_);
  if (!found) {
    in_.log.warning("ledger not usable, all observed objects are sent again",
                    {{"file", file_}, {"reason", found.error().message}});
    return {};
  }
  was_read_ = !found->empty();
  return std::move(*found);
}

bool ledger_file::due(core::time_point now) const {
  return !file_.empty() && !encoding_ && !write_ && now >= not_before_ &&
         objects_.version() != saved_;
}

std::string_view ledger_file::state() const noexcept {
  if (file_.empty()) return "none";
  if (fails_) return "failed";
  return was_read_ ? "read" : "missing";
}

/// Returns false if cancelled before.
asio::awaitable<bool> ledger_file::write_ended() {
  while (write_) {
    const auto under_way = write_;
    const auto aborted = co_await under_way->ended.wait();
    if (aborted) co_return false;
  }
  co_return true;
}

asio::awaitable<void> ledger_file::save() {
  const bool free = co_await write_ended();
  const auto version = objects_.version();
  if (!free || file_.empty() || version == saved_) co_return;
  encoding_ = true;
  const auto begin = in_.clock.now();
  ledger_encoder encoder(objects_);
  while (encoder.encode(slice)) co_await asio::post(executor_, asio::use_awaitable);
  encoding_ = false;
  begin_write(encoder.take(), version, begin);
  co_await write_ended();
}

void ledger_file::begin_write(std::string bytes, std::uint64_t version, core::time_point begin) {
  write_ = std::make_shared<write>(executor_);
  write_->on_end = [this, version, begin](const std::string& error) {
    end_write(error, version, begin);
  };
  disk_->idle = false;
  auto work = [file = file_, bytes = std::move(bytes), on = disk_, current = std::weak_ptr(write_),
               back = executor_]() mutable {
    seal_ledger(bytes);
    auto error = write_ledger(file, bytes);
    const std::lock_guard lock(on->guard);
    on->idle = true;
    on->changed.notify_all();
    if (on->abandoned) return;
    asio::post(back, [current = std::move(current), error = std::move(error)] {
      const auto ended = current.lock();
      if (!ended) return;
      if (ended->on_end) ended->on_end(error);
      ended->ended.set();
    });
  };
  if (in_.blocking) {
    asio::post(in_.blocking, std::move(work));
    return;
  }
  if (thread_.joinable()) thread_.join();  // its write has ended
  thread_ = std::thread(std::move(work));
}

void ledger_file::end_write(const std::string& error, std::uint64_t version,
                            core::time_point begin) {
  write_ = nullptr;
  const auto now = in_.clock.now();
  not_before_ = now + std::min((now - begin) * share, longest_pause);
  fails_ = !error.empty();
  if (!fails_) {
    saved_ = version;
    written_.Increment();
    return;
  }
  failed_.Increment();
  in_.log.limited(log_limit_, core::log_level::error, "ledger not written",
                  {{"file", file_}, {"error", error}});
}

}  // namespace rw::observation
