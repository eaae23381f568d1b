#include "core/work_queue.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rw::core::work_queue_detail {
namespace {

namespace asio = boost::asio;

constexpr duration publish_every = std::chrono::milliseconds(500);  // as client-go

duration::rep ticks(time_point when) {
  return when.time_since_epoch().count();
}

/// In `from` to come, but not beyond the end of time.
duration::rep after(duration::rep from, duration by) {
  constexpr auto end = std::numeric_limits<duration::rep>::max() - 1;
  return by.count() > end - from ? end : from + by.count();
}

work_queue_options usable(work_queue_options options) {
  if (options.capacity == 0 || options.capacity > none / 2) {
    throw std::invalid_argument("work queue " + options.name + ": the capacity must be 1 to 2^31");
  }
  options.retry_jitter = std::clamp(options.retry_jitter, 0.0, 1.0);
  return options;
}

}  // namespace

void ring::grow() {
  const auto length = mask_ + 1;
  auto larger = std::make_unique<node*[]>(2 * length);
  const auto larger_mask = 2 * length - 1;
  for (auto at = head_; at != tail_; ++at) larger[at & larger_mask] = places_[at & mask_];
  places_ = std::move(larger);
  mask_ = larger_mask;
}

void in_process::reserve(std::size_t capacity) {
  auto larger = std::make_unique<node*[]>(capacity);
  std::copy_n(all_.get(), size_, larger.get());
  all_ = std::move(larger);
}

/// The highest level goes first unless another has waited for too long; then the lowest of those.
priority ready_list::choose() noexcept {
  std::optional<priority> first;
  std::optional<priority> late;
  for (const auto level : {priority::high, priority::normal, priority::low}) {
    if (size(level) == 0) continue;
    if (!first) first = level;
    if (passed_over_[index(level)]++ >= turns) late = level;
  }
  const auto chosen = late.value_or(*first);
  passed_over_[index(chosen)] = 0;
  if (chosen != priority::normal) --sizes_[index(chosen)];
  return chosen;
}

void ready_list::push(node& one, priority level) {
  ring& into = rings_[index(level)];
  if (!into.ready()) into.grow();
  into.push(one);
  one.level = level;
  one.where = place::queued;
  ++size_;
  if (level != priority::normal) ++sizes_[index(level)];
}

node& ready_list::take() noexcept {
  auto& from = rings_[index(special() == 0 ? priority::normal : choose())];
  while (from.front() == nullptr) from.pop();
  node& first = *from.front();
  from.pop();
  --size_;
  return first;
}

base::base(asio::any_io_executor executor, work_queue_options options,
           work_queue_environment environment)
    : options_(usable(std::move(options))),
      workers_(executor),
      room_(executor),
      executor_(std::move(executor)),
      environment_(std::move(environment)),
      turn_(std::make_shared<turn>(turn{this})),
      ends_(executor_),
      bucket_(options_.retries_per_second, options_.retry_burst),
      series_(environment_.numbers, options_.name),
      alarm_(environment_.time.make_timer(executor_)) {}

base::~base() {
  turn_->queue = nullptr;
}

void base::read_clock() {
  now_ = ticks(environment_.time.now());
  readings_ = shared_readings;
  if (!turn_->ends) {
    turn_->ends = true;
    asio::post(executor_, [turn = turn_] {
      turn->ends = false;
      if (turn->queue != nullptr) turn->queue->readings_ = 0;
    });
  }
  if (publish_at_ == never) {
    publish_at_ = after(now_, publish_every);
    alarm_->cancel();  // `run` sets it anew
  }
}

bool base::add_known(node& one, priority level) {
  switch (one.where) {
    case place::queued:
      if (level < one.level) {
        ready_.remove(one);
        ready_.push(one, level);
      }
      return false;
    case place::processing:
      if (one.again) {
        if (level < one.again_level) {
          --again_[static_cast<std::size_t>(one.again_level)];
          ++again_[static_cast<std::size_t>(level)];
          one.again_level = level;
        }
        return false;
      }
      one.again = true;
      one.again_level = level;
      one.added = now();
      ++again_[static_cast<std::size_t>(level)];
      return true;
    case place::nowhere:
      break;
  }
  if (!one.delayed()) stop_remembering(one);
  add_new(one, level);
  return true;
}

bool base::delay(node& one, std::optional<priority> level, duration by) {
  ++counts_.retried;
  read_clock();
  const auto due = after(now_, by);
  const auto wanted = level.value_or(one.where == place::processing ? one.level : priority::normal);
  if (one.delayed()) {
    one.delayed_level = std::min(one.delayed_level, wanted);
    if (!delays_.advance(one, due)) return false;
  } else {
    if (one.where == place::nowhere && one.remembered) stop_remembering(one);
    one.delayed_level = wanted;
    delays_.push(one, due);
  }
  if (&delays_.next() == &one) alarm_->cancel();
  return true;
}

duration base::next_retry(node& one) {
  const auto limit = options_.retry_limit;
  auto wait = std::min(options_.retry_base, limit);
  for (unsigned i = 0; i < one.failures && wait > duration::zero() && wait < limit; ++i) {
    wait = wait > limit / 2 ? limit : wait * 2;
  }
  if (one.failures != none) ++one.failures;
  // The upper 53 bits of a random number are a fraction between 0 and 1.
  const auto fraction = static_cast<double>(environment_.random() >> 11) * 0x1p-53;
  const auto shorter = static_cast<double>(wait.count()) * options_.retry_jitter * fraction;
  wait -= duration(static_cast<duration::rep>(shorter));
  return std::max(wait, bucket_.take(environment_.time.now()));
}

void base::stop_remembering(node& one) noexcept {
  if (!one.remembered) return;
  one.remembered = false;
  list::remove(one);
  --remembered_;
}

node& base::take_any() {
  if (!time_known()) read_clock();
  node& one = ready_.take();
  begin(one);
  if (shut_down_) tell_ends();
  return one;
}

bool base::finish(node& one) {
  if (!time_known()) read_clock();
  end(one);
  if (one.again) {
    one.again = false;
    --again_[static_cast<std::size_t>(one.again_level)];
    enqueue(one, one.again_level, one.added);
    return false;
  }
  if (shut_down_) tell_ends();
  return settle(one);
}

bool base::settle(node& one) {
  one.where = place::nowhere;
  if (one.delayed()) return false;
  if (one.failures == 0) return true;
  one.remembered = true;
  remembered_list_.push_back(one);
  ++remembered_;
  room_.wake_one();
  return false;
}

bool base::make_room() {
  if (remembered_ == 0) {
    ++counts_.refused_full;
    return false;
  }
  node& oldest = static_cast<node&>(remembered_list_.front());
  stop_remembering(oldest);
  oldest.failures = 0;
  release(oldest);
  return true;
}

void base::end_delays(duration::rep until) {
  while (!delays_.empty() && delays_.next_due() <= until) {
    node& one = delays_.next();
    delays_.remove(one);
    add_known(one, one.delayed_level);
  }
}

void base::shut_down() {
  if (shut_down_) return;
  shut_down_ = true;
  limit_ = 0;
  while (!delays_.empty()) {
    node& one = delays_.next();
    delays_.remove(one);
    if (one.where == place::nowhere && settle(one)) release(one);
  }
  room_.wake_all();
  tell_ends();
}

void base::tell_ends() {
  if (ended()) workers_.wake_all();
  if (!drained()) return;
  ends_.wake_all();
  alarm_->cancel();
}

asio::awaitable<void> base::drain() {
  shut_down();
  while (!drained()) {
    const bool woken = co_await ends_.wait();
    if (!woken) co_return;
  }
}

asio::awaitable<void> base::run() {
  while (!drained()) {
    const auto when = ticks(environment_.time.now());
    end_delays(when);
    if (when >= publish_at_) publish();
    const auto next = delays_.empty() ? never : delays_.next_due();
    alarm_->expires_at(time_point(duration(std::min(next, publish_at_))));
    co_await alarm_->wait();
  }
  publish();
}

void base::publish() {
  const auto taken = series_.publish(counts_);
  std::size_t depth = 0;
  for (std::size_t i = 0; i < levels; ++i) {
    const auto keys = ready_.size(static_cast<priority>(i)) + again_[i];
    series_.depth[i]->Set(static_cast<double>(keys));
    depth += keys;
  }
  // What was taken had been added, and so had what is there.
  series_.added.Increment(static_cast<double>(taken + depth - std::exchange(depth_, depth)));
  const auto when = ticks(environment_.time.now());
  double unfinished = 0;
  double longest = 0;
  for (const auto* each : in_process_) {
    const auto age = static_cast<double>(when - each->started) * 1e-9;
    unfinished += age;
    longest = std::max(longest, age);
  }
  series_.unfinished.Set(unfinished);
  series_.longest.Set(longest);
  // At rest until something happens, which then must look at the clock to find that out.
  publish_at_ = in_process_.size() > 0 ? after(when, publish_every) : never;
  readings_ = 0;
}

}  // namespace rw::core::work_queue_detail
