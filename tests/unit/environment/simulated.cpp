#include "tests/unit/environment/simulated.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <exception>
#include <sched.h>

namespace rw::test {
namespace {

using tcp = asio::ip::tcp;

}  // namespace

/// On a busy machine the kernel may put off the delivery of what was sent over loopback. It
/// delivers what one CPU sent in order, so when a byte that was sent last has come, all has.
loopback_fence::loopback_fence() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
  sched_setaffinity(0, sizeof one, &one);
  tcp::acceptor acceptor(context_, {asio::ip::address_v4::loopback(), 0});
  near_.connect(acceptor.local_endpoint());
  near_.set_option(tcp::no_delay(true));
  acceptor.accept(far_);
}

void loopback_fence::flush() {
  char byte = 0;
  asio::write(near_, asio::buffer(&byte, 1));
  asio::read(far_, asio::buffer(&byte, 1));
}

simulated_time::simulated_time(asio::io_context& context, core::manual_clock& time, bool fenced)
    : context_(context), time_(time) {
  if (fenced) loopback_.emplace();
}

/// A connection takes the kernel three deliveries of its own before anybody is told.
void simulated_time::settle() {
  context_.restart();
  const int enough = loopback_ ? 3 : 1;
  for (int quiet = 0; quiet < enough;) {
    quiet = context_.poll() > 0 ? 0 : quiet + 1;
    if (loopback_ && quiet > 0 && quiet < enough) loopback_->flush();
  }
}

/// To the next alarm, at most, and to what follows from it.
void simulated_time::step(core::time_point until) {
  const auto next = std::min(time_.next_alarm(), until);
  time_.advance(std::max(next - time_.now(), core::duration::zero()));
  settle();
}

void simulated_time::pass(core::duration by) {
  const auto until = time_.now() + by;
  settle();
  while (time_.now() < until) step(until);
}

void simulated_time::finish(asio::awaitable<void> work) {
  bool done = false;
  std::exception_ptr failure;
  context_.restart();
  asio::co_spawn(context_, std::move(work), [&](std::exception_ptr thrown) {
    failure = std::move(thrown);
    done = true;
  });
  settle();
  const auto patience = time_.now() + std::chrono::minutes(10);
  while (!done && time_.now() < patience) step(patience);
  require(done, "the test's own work did not end");
  if (failure) std::rethrow_exception(failure);
}

simulated::simulated(k8s::devserver::server_options options, core::random_source (*make_random)(),
                     std::chrono::system_clock::time_point wall)
    : environment({.server = options,
                   .tick = std::chrono::seconds(10),
                   .client = {.name = "test", .retry_base = {}},  // whose jitter is not of a seed
                   .clock = std::make_unique<core::manual_clock>(wall),
                   .make_random = make_random}),
      simulated_time(context, static_cast<core::manual_clock&>(clock), options.tls) {}

simulated::~simulated() {
  finish(close());
}

void simulated::eventually(const std::function<bool()>& condition, std::string_view what) {
  const auto patience = clock.now() + std::chrono::minutes(10);
  bool holds = condition();
  while (!holds && clock.now() < patience) {
    pass(std::chrono::milliseconds(100));
    holds = condition();
  }
  require(holds, "not in time: " + std::string(what));
}

}  // namespace rw::test
