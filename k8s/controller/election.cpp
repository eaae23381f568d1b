#include "rw/k8s/controller/election.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>

namespace rw::k8s {
namespace {

namespace json = boost::json;
using wall_time = std::chrono::system_clock::time_point;

/// The field is an int32, and a Lease whose number is negative is refused: it stays at the largest.
constexpr std::int64_t most_transitions = std::numeric_limits<std::int32_t>::max();

/// client-go's JitterFactor: a follower waits for up to 2.2 retry periods.
constexpr double jitter_factor = 1.2;

election_options checked(election_options options) {
  const auto refuse = [&](const char* reason) {
    throw std::invalid_argument("leader election " + options.ns + "/" + options.name + ": " +
                                reason);
  };
  if (options.name.empty()) refuse("the Lease has no name");
  if (options.identity.empty()) refuse("identity must not be empty");
  if (options.retry_period <= std::chrono::milliseconds(0)) refuse("retry_period must be positive");
  if (options.lease_duration < std::chrono::seconds(1) ||
      options.lease_duration % std::chrono::seconds(1) != std::chrono::milliseconds(0)) {
    refuse("lease_duration must be whole seconds");
  }
  if (options.margin < std::chrono::milliseconds(0) ||
      options.lease_duration - options.margin <= options.renew_deadline) {
    refuse("lease_duration must be longer than renew_deadline and margin");
  }
  if (options.renew_deadline.count() <= jitter_factor * double(options.retry_period.count())) {
    refuse("renew_deadline must be longer than 1.2 retry periods");
  }
  return options;
}

}  // namespace

election::election(election_options options, core::random_source random)
    : options_(checked(std::move(options))), random_(std::move(random)) {}

core::time_point election::writes_until() const noexcept {
  if (!leading_) return core::time_point::min();
  return gained_ + (options_.lease_duration - options_.margin);
}

/// A leader's request may take half of the remaining time, so that it can be repeated if it hangs.
core::time_point election::request_deadline(core::time_point now) const {
  if (!leading_) return now + options_.renew_deadline;
  return std::min(now + options_.renew_deadline / 2, gained_ + options_.renew_deadline);
}

observed_leader election::observed(core::time_point now) const {
  return {.holder = seen_.holder,
          .leads = leading_ || held_by_other(now),
          .renewed = seen_.renewed,
          .error = read_error_};
}

election::step election::wait(core::time_point now, bool jitter) {
  asked_ = step::kind::wait;
  auto by = core::duration(options_.retry_period);
  if (jitter) {
    const auto fraction = static_cast<double>(random_() >> 11) * 0x1p-53;
    by += core::duration(
        static_cast<core::duration::rep>(jitter_factor * fraction * double(by.count())));
  }
  auto until = now + by;
  if (leading_) until = std::min(until, gained_ + options_.renew_deadline);
  return {asked_, until, {}};
}

election::step election::read(core::time_point now) {
  asked_ = step::kind::read;
  return {asked_, request_deadline(now), {}};
}

election::step election::write(core::time_point now, wall_time wall) {
  auto object = object_;
  const bool exists = !object.is_null();
  if (!exists) {
    object = json::object{{"apiVersion", leases_type().gvk.api_version()},
                          {"kind", leases_type().gvk.kind},
                          {"metadata", {{"namespace", options_.ns}, {"name", options_.name}}}};
  }
  const bool is_own = exists && seen_.holder == options_.identity;
  lease spec = exists ? seen_ : lease{};
  if (!is_own) {
    spec.acquired = wall;
    if (exists) spec.transitions = std::min(spec.transitions + 1, most_transitions);
  }
  spec.holder = options_.identity;
  spec.duration = std::chrono::duration_cast<std::chrono::seconds>(options_.lease_duration);
  spec.renewed = wall;
  write_lease(object, spec);
  for (const auto& [name, value] : options_.annotations) set_annotation(object, name, value);
  asked_ = exists ? step::kind::update : step::kind::create;
  sent_ = now;
  return {asked_, request_deadline(now), std::move(object)};
}

election::step election::release(core::time_point now, wall_time wall) {
  auto object = object_;
  auto spec = seen_;
  spec.holder.clear();
  spec.duration = std::chrono::seconds(1);
  spec.acquired = wall;
  spec.renewed = wall;
  write_lease(object, spec);
  leading_ = false;
  asked_ = step::kind::update;
  return {asked_, now + options_.renew_deadline / 2, std::move(object)};
}

election::step election::begin(core::time_point now, wall_time) {
  return read(now);
}

election::step election::resume(response result, core::time_point now, wall_time wall) {
  error_.clear();
  if (result) {
    auto next = asked_ == step::kind::read ? after_read(std::move(*result), now, wall)
                                           : after_write(std::move(*result), now);
    if (!leading_ || now < gained_ + options_.renew_deadline) return next;
    return lose(now);
  }
  if (!leading_) return read(now);
  if (now >= gained_ + options_.renew_deadline) return lose(now);
  return write(now, wall);
}

election::step election::after_read(result<json::value> read, core::time_point now,
                                    wall_time wall) {
  read_error_.clear();
  if (read.has_value()) {
    see(std::move(*read), now);
  } else if (read.error().is(errc::not_found)) {
    object_ = nullptr;
    seen_ = {};
  } else {
    error_ = read_error_ = read.error().message;
    return wait(now, !leading_);
  }
  if (leading_ && !object_.is_null() && seen_.holder != options_.identity) return lose(now);
  if (held_by_other(now)) return wait(now, true);
  return write(now, wall);
}

election::step election::after_write(result<json::value> written, core::time_point now) {
  if (written.has_value()) {
    see(std::move(*written), now);
    gained_ = sent_;
    leading_ = true;
    return wait(now, false);
  }
  const auto& error = written.error();
  const bool changed =
      error.is(errc::conflict) || error.is(errc::already_exists) || error.is(errc::not_found);
  if (!changed) error_ = error.message;
  // Another process wrote, or an earlier write of this one arrived although its response was lost.
  if (changed && leading_) return read(now);
  return wait(now, !leading_);
}

election::step election::lose(core::time_point now) {
  leading_ = false;
  return wait(now, true);
}

void election::see(json::value object, core::time_point now) {
  auto spec = read_lease(object);
  if (object_.is_null() || spec != seen_) seen_at_ = now;
  seen_ = std::move(spec);
  object_ = std::move(object);
}

bool election::held_by_other(core::time_point now) const {
  if (object_.is_null() || seen_.holder.empty() || seen_.holder == options_.identity) return false;
  const core::duration lasts = seen_.duration > std::chrono::seconds(0)
                                   ? core::duration(seen_.duration)
                                   : core::duration(options_.lease_duration);
  return now - seen_at_ < lasts;
}

}  // namespace rw::k8s
