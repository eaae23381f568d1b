#include "rw/k8s/controller/leader_election.hpp"

#include "rw/core/within.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <cstdio>
#include <utility>

namespace rw::k8s {

namespace asio = boost::asio;
namespace json = boost::json;

/// Signals the end of the loop to `run`, however it ends.
struct leader_elector::end_of_loop {
  leader_elector& of;
  ~end_of_loop() {
    of.over_ = true;
    of.ended_.set();
  }
};

leader_elector::leader_elector(asio::any_io_executor executor, std::shared_ptr<object_api> api,
                               election_options options, std::vector<reactor> reactors,
                               fence& writes, leader_environment environment)
    : executor_(std::move(executor)),
      api_(std::move(api)),
      options_(options),
      reactors_(std::move(reactors)),
      fence_(writes),
      environment_(std::move(environment)),
      election_(std::move(options), environment_.random),
      status_(core::make_gauge(environment_.metrics, "leader_election_master_status",
                               "1 while this process leads", {{"name", options_.name}})),
      lost_(core::make_counter(environment_.metrics, "rw_leader_election_lost_total",
                               "Number of leases lost, not released", {{"name", options_.name}})),
      failures_(core::make_counter(environment_.metrics, "rw_leader_election_failures_total",
                                   "Number of failed requests for the Lease",
                                   {{"name", options_.name}})),
      alarm_(environment_.clock.make_timer(executor_)),
      term_over_(executor_),
      ended_(executor_),
      loop_(executor_) {
  status_.Set(0);
}

asio::awaitable<void> leader_elector::run() {
  loop_.spawn(elect());
  co_await ended_.wait();
  co_await asio::this_coro::throw_if_cancelled(false);
  stopping_ = true;
  if (election_.leading()) {
    term_->cancel();
    alarm_->cancel();
  } else if (!term_) {
    loop_.cancel();
  }  // else the loop waits for reactors that are cancelled already, and ends after them
  while (!over_) {
    const auto again = co_await ended_.wait();
    if (again) abort_term();
  }
  std::exception_ptr broken;
  try {
    co_await loop_.join();
  } catch (...) {
    broken = std::current_exception();
  }
  fence_.shut();
  status_.Set(0);
  if (failure_) std::rethrow_exception(failure_);
  if (broken) std::rethrow_exception(broken);
}

asio::awaitable<void> leader_elector::elect() {
  const end_of_loop end{*this};
  auto step = election_.begin(now(), wall());
  for (;;) {
    auto result = co_await perform(step);
    // The wait may have ended early: the end of the loop checks for that.
    const bool due = step.type != election::step::kind::wait || now() >= step.until;
    if (due) {
      step = election_.resume(std::move(result), now(), wall());
      tell_news();
      co_await follow_up();
    }
    if (stopping_ && (reactors_ended_ || !election_.leading())) break;
  }
  if (election_.leading()) co_await release();
}

/// Returns nothing after a wait.
asio::awaitable<election::response> leader_elector::perform(election::step step) {
  if (step.type == election::step::kind::wait) {
    alarm_->expires_at(step.until);
    co_await alarm_->wait();
    co_return std::nullopt;
  }
  auto asked = request(step);
  auto ended = co_await core::within(environment_.clock, step.until, std::move(asked));
  if (ended) co_return std::move(*ended);
  co_return result<json::value>(
      failure{make_error_code(errc::timed_out),
              0,
              {},
              "the Lease " + options_.ns + "/" + options_.name + ": no response in time"});
}

asio::awaitable<result<json::value>> leader_elector::request(election::step step) {
  switch (step.type) {
    case election::step::kind::create:
      return api_->create(leases_type(), std::move(step.object));
    case election::step::kind::update:
      return api_->update(leases_type(), std::move(step.object));
    default:
      return api_->get(leases_type(), {options_.ns, options_.name});
  }
}

/// Begins or ends a term by the election's state.
asio::awaitable<void> leader_elector::follow_up() {
  if (election_.leading()) {
    if (!hurried_) fence_.open_until(election_.writes_until());
    if (!term_) begin_term();
    co_return;
  }
  if (!term_) co_return;
  fence_.shut();
  status_.Set(0);
  lost_.Increment();
  environment_.log.error("leadership lost; the reactors are being cancelled",
                         {{"lease", options_.name}, {"holder", election_.holder()}});
  term_->cancel();
  while (!reactors_ended_) co_await term_over_.wait();
  term_.reset();
}

void leader_elector::begin_term() {
  environment_.log.info("leading", {{"lease", options_.name}, {"identity", options_.identity}});
  status_.Set(1);
  reactors_ended_ = false;
  term_ = std::make_unique<core::task_group>(executor_);
  for (const auto& start : reactors_) term_->spawn(start());
  loop_.spawn(await_reactors());
}

/// Handles a second cancellation. The reactors may still take their time, and the lease is held for
/// them; but they can no longer write.
void leader_elector::abort_term() {
  hurried_ = true;
  fence_.shut();
  if (!reactors_ended_) {
    term_->cancel();
  } else {
    loop_.cancel();  // it only requests the Lease, which is no longer needed
  }
}

asio::awaitable<void> leader_elector::await_reactors() {
  co_await asio::this_coro::throw_if_cancelled(false);
  try {
    co_await term_->join();
  } catch (const boost::system::system_error& e) {
    if (e.code() != asio::error::operation_aborted) failure_ = std::current_exception();
  } catch (...) {
    failure_ = std::current_exception();
  }
  reactors_ended_ = true;
  if (failure_) stopping_ = true;
  term_over_.set();
  if (stopping_) alarm_->cancel();
}

asio::awaitable<void> leader_elector::release() {
  fence_.shut();
  status_.Set(0);
  const auto step = election_.release(now(), wall());
  const auto result = co_await perform(step);
  if (result->has_value()) {
    environment_.log.info("lease released", {{"lease", options_.name}});
  } else {
    environment_.log.warning(
        "the lease could not be released; the next leader has to wait for its expiry",
        {{"lease", options_.name}, {"error", result->error().message}});
  }
}

void leader_elector::tell_news() {
  if (!election_.error().empty()) {
    failures_.Increment();
    environment_.log.limited(error_log_, core::log_level::warning, "request for the lease failed",
                             {{"lease", options_.name}, {"error", election_.error()}});
  }
  if (election_.holder() == told_holder_) return;
  told_holder_ = election_.holder();
  environment_.log.info("the lease has a new holder",
                        {{"lease", options_.name}, {"holder", told_holder_}});
}

std::string make_election_identity(core::random_source& random) {
  boost::system::error_code ignored;
  char number[24];
  std::snprintf(number, sizeof number, "_%016llx", static_cast<unsigned long long>(random()));
  return asio::ip::host_name(ignored) + number;
}

}  // namespace rw::k8s
