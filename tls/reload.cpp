#include "tls/reload.hpp"

#include "tls/directory_watch.hpp"
#include "tls/quiet_period.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <vector>

namespace rw::tls {
namespace {

namespace asio = boost::asio;
using clock = std::chrono::steady_clock;

std::vector<std::string> configured(const material_files& files) {
  std::vector<std::string> out{files.certificate, files.key, files.ca};
  std::erase(out, std::string());
  return out;
}

}  // namespace

struct reloader::watcher {
  explicit watcher(const asio::any_io_executor& executor) : directories(executor) {}
  directory_watch directories;
};

reloader::reloader(asio::any_io_executor executor, std::shared_ptr<credentials> target,
                   material_files files, core::logger& log, reload_options options)
    : target_(std::move(target)),
      files_(std::move(files)),
      log_(log),
      options_(options),
      seen_(target_->current()->digest()),
      watcher_(std::make_unique<watcher>(executor)) {}

reloader::~reloader() = default;

asio::awaitable<void> reloader::run() {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await asio::this_coro::throw_if_cancelled(false);
  const auto cancellation = co_await asio::this_coro::cancellation_state;

  const auto paths = configured(files_);
  auto& directories = watcher_->directories;
  if (!directories.follow(paths)) {
    log_.warning("TLS files cannot be watched everywhere, they are compared at intervals",
                 {{"interval_ms", std::int64_t{options_.poll.count()}}});
  }
  check();  // what came between the first load and the watch

  quiet_period burst(options_.quiet, options_.quiet_limit);
  auto next_poll = clock::now() + options_.poll;
  for (;;) {
    const auto end = std::min(next_poll, burst.due().value_or(next_poll));
    co_await directories.wait(end);
    if (cancellation.cancelled() != asio::cancellation_type::none) co_return;
    if (directories.take()) burst.changed(clock::now());
    const auto now = clock::now();
    if (now < std::min(next_poll, burst.due().value_or(next_poll))) continue;
    // Watch first, look then: a change between the two makes another notice.
    directories.follow(paths);
    burst.reset();
    next_poll = now + options_.poll;
    check();
  }
}

bool reloader::check() {
  const auto text = read_text(files_);
  const auto found = text ? text->digest() : text.error().message();
  if (found == seen_) return false;
  seen_ = found;
  const auto outcome = text ? use(*text) : result<void>(text.error());
  if (outcome) {
    successes_.fetch_add(1, std::memory_order_relaxed);
  } else {
    failures_.fetch_add(1, std::memory_order_relaxed);
    log_.error("new TLS files are refused, the old ones stay in use until they change again",
               {{"reason", outcome.error().message()}});
  }
  if (told_) told_(outcome);
  return true;
}

result<void> reloader::use(const material_text& text) {
  // Back from a bad set to the one in use: there is nothing to swap.
  if (text.digest() == target_->current()->digest()) {
    log_.info("TLS files are back to those in use");
    return {};
  }
  auto next = material::from_text(text, files_);
  if (!next) return next.error();
  const auto leaf = next->leaf();
  target_->replace(std::move(*next));
  if (!leaf) {
    log_.info("new TLS files in use", {{"generation", target_->generation()}});
    return {};
  }
  log_.info("new TLS files in use", {{"generation", target_->generation()},
                                     {"subject", leaf->subject()},
                                     {"fingerprint", leaf->fingerprint()}});
  if (!leaf->valid_at(std::chrono::system_clock::now())) {
    log_.error("the certificate in use is expired or not yet valid",
               {{"file", files_.certificate}, {"subject", leaf->subject()}});
  }
  return {};
}

}  // namespace rw::tls
