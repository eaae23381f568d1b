#include "rw/reactors/gateway_secret/rotation.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/explanations.hpp"

#include <algorithm>
#include <ranges>
#include <tuple>
#include <utility>
#include <vector>

namespace rw::gateway_secret {
namespace {

bool expired(const tls::certificate& certificate, wall_time now) {
  return certificate.not_after() < now;
}

/// Makes one plan; each member function handles one concern, in the order of `make`.
class planner {
 public:
  planner(const observed& state, const cluster_states& clusters, const rotation_options& options,
          wall_time now)
      : state_(state),
        clusters_(clusters),
        options_(options),
        exact_(now),
        now_(std::chrono::floor<std::chrono::seconds>(now)) {}

  rotation_plan make() {
    if (!begin()) return std::move(out_);
    repair_pair();
    repair_bundle();
    add_authorities();
    repair_authority_of_served();
    set_time();
    drop_expired();
    consider_switch();
    finish();
    return std::move(out_);
  }

 private:
  /// Returns false if there is no gateway Secret, and no material to make one.
  bool begin() {
    if (state_.gateway) {
      next_ = *state_.gateway;
      return true;
    }
    const auto& before = state_.last_whole;
    const bool rooted = state_.root && !expired(state_.root->server, exact_);
    if (before && (rooted || !expired(*before->served, exact_))) {
      did(rotation_step::create);
      next_ = *before;
      return true;
    }
    if (!state_.root) {
      wait(rotation_phase::no_root, "cannot make the gateway Secret: " + state_.root_error);
      return false;
    }
    if (!rooted) {
      wait(rotation_phase::blocked,
           "cannot make the gateway Secret: the root certificate has expired");
      return false;
    }
    did(rotation_step::create);
    serve_root();
    return true;
  }

  void repair_pair() {
    if (next_.served) return;
    const auto& before = state_.last_whole;
    if (before && before->served && !expired(*before->served, exact_)) {
      next_.pair = before->pair;
      next_.served = before->served;
    } else if (state_.root && !expired(state_.root->server, exact_)) {
      serve_root();
    } else {
      return;
    }
    did(rotation_step::repair_pair);
  }

  void repair_bundle() {
    if (next_.bundle_error.empty()) return;
    auto left = std::exchange(next_.bundle, {});
    if (state_.last_whole) next_.bundle = state_.last_whole->bundle;
    for (const auto& certificate : left.authorities()) next_.bundle.append(certificate);
    did(rotation_step::repair_bundle);
  }

  void add_authorities() {
    if (!state_.root) return;
    for (const auto& certificate : state_.root->authorities | std::views::reverse) {
      if (next_.bundle.contains(certificate) || expired(certificate, exact_)) continue;
      if (next_.bundle.size() >= options_.authorities) {
        full_ = true;
      } else {
        next_.bundle.prepend(certificate);
        added_ = true;
      }
    }
    if (added_ && !out_.has(rotation_step::create)) did(rotation_step::add_authority);
  }

  /// Adds the authority of the served certificate: every runtime must find it in its bundle. The
  /// authority is not new, so caAddedToBundleAt stays.
  void repair_authority_of_served() {
    if (!next_.served || expired(*next_.served, exact_)) return;
    const auto& served = *next_.served;
    if (next_.bundle.contains(served) || next_.bundle.issuer_of(served) != nullptr) return;
    std::vector<tls::certificate> known{served};
    if (state_.root) std::ranges::copy(state_.root->authorities, std::back_inserter(known));
    if (state_.last_whole) {
      std::ranges::copy(state_.last_whole->bundle.authorities(), std::back_inserter(known));
    }
    const auto at = std::ranges::find_if(known, [&](const tls::certificate& certificate) {
      return tls::is_issued_by(served, certificate);
    });
    if (at == known.end()) return;
    next_.bundle.append(*at);
    did(rotation_step::repair_bundle);
  }

  void set_time() {
    if (next_.bundle.empty()) return;
    const bool sound = next_.ca_added_at && *next_.ca_added_at <= now_ + options_.clock_skew;
    if (added_) {
      next_.ca_added_at = sound ? std::max(*next_.ca_added_at, now_) : now_;
    } else if (!sound) {
      next_.ca_added_at = now_;
      did(rotation_step::repair_time);
    }
  }

  void drop_expired() {
    const auto keep = [&](const tls::certificate& certificate) {
      return is_of_root(certificate) || is_of_served(certificate);
    };
    if (!next_.bundle.drop_expired(exact_ - options_.expiry_margin, keep).empty()) {
      did(rotation_step::drop_expired);
    }
  }

  bool is_of_root(const tls::certificate& certificate) const {
    return state_.root && std::ranges::find(state_.root->authorities, certificate) !=
                              state_.root->authorities.end();
  }
  bool is_of_served(const tls::certificate& certificate) const {
    return next_.served &&
           (*next_.served == certificate || tls::is_issued_by(*next_.served, certificate));
  }

  void consider_switch() {
    if (!state_.root) return wait(rotation_phase::no_root, state_.root_error);
    const auto& root = state_.root->server;
    if (full_) {
      return wait(rotation_phase::blocked, "the bundle has " + std::to_string(next_.bundle.size()) +
                                               " authorities and takes no more");
    }
    if (!next_.served) {
      return wait(rotation_phase::blocked,
                  "the gateway has nothing to serve with: " + next_.pair_error);
    }
    if (expired(root, exact_))
      return wait(rotation_phase::blocked, "the root certificate has expired");
    if (*next_.served == root) return wait(rotation_phase::settled, {});
    if (root.not_before() > exact_) {
      recheck_at(root.not_before());
      return wait(rotation_phase::grace,
                  "the root certificate is not valid before " + text(root.not_before()));
    }
    if (expired(*next_.served, exact_)) return switch_server();
    recheck_at(next_.served->not_after());
    out_.demand = {.authority = root.fingerprint(),
                   .newest = next_.bundle.authorities().front().fingerprint(),
                   .since = *next_.ca_added_at};
    if (!is_due() || !is_everywhere() || added_) return;
    switch_server();
  }

  /// Returns whether the grace period has passed, or the served certificate is about to expire.
  bool is_due() {
    const auto due = *next_.ca_added_at + options_.grace;
    const auto urgent = next_.served->not_after() - options_.urgent;
    recheck_at(due);
    if (!options_.time_only) recheck_at(urgent);
    const auto begins = options_.time_only ? due : std::min<wall_time>(due, urgent);
    if (exact_ >= begins) {
      wait(rotation_phase::distributing, {});
      out_.due_since = begins;
      return true;
    }
    wait(rotation_phase::grace, "the grace period ends at " + text(due));
    is_everywhere();
    return false;
  }

  /// Returns whether all runtimes meet the demand, or the deadline has passed. Records which do
  /// not.
  bool is_everywhere() {
    if (options_.time_only) return true;
    const auto deadline = switch_deadline(*next_.ca_added_at, next_.served->not_after(), options_);
    out_.deadline = deadline;
    recheck_at(deadline);
    recheck_at(deadline - options_.notice);
    const auto missing_runtime = missing();
    if (missing_runtime.empty() || exact_ >= deadline) {
      out_.left_behind = missing_runtime;
      return true;
    }
    out_.near_deadline = exact_ >= deadline - options_.notice;
    if (!out_.waiting.empty()) out_.waiting += "; ";
    out_.waiting += "missing: " + missing_runtime + "; not waited for after " + text(deadline);
    return false;
  }

  /// Returns the runtimes that block the switch, as text: the first few by name, so that the text
  /// stays the same while they do.
  std::string missing() {
    if (!clusters_.is_complete()) return "it is not known yet which runtimes there are";
    std::vector<missing_one> all;
    std::vector<missing_one> excused;
    std::size_t count = 0;
    clusters_.for_each([&](const k8s::object_key& kyma, const cluster_state& entry) {
      if (entry.is_concerned()) ++count;
      const auto lack = lacks(entry, *out_.demand, options_, exact_);
      if (lack.recheck_at) recheck_at(*lack.recheck_at);
      if (lack.reason.empty()) return;
      (lack.excused ? excused : all).push_back({&kyma, lack.reason, &entry});
    });
    // More at once are hardly the tenants' fault: those that failed last are waited for.
    const auto most =
        options_.excused_percent == 0
            ? 0
            : std::max(options_.excused_least, count * options_.excused_percent / 100);
    const bool too_many = excused.size() > most;
    if (too_many) {
      std::ranges::sort(excused, {},
                        [](const auto& runtime) { return *runtime.state->own_fault_since(); });
      all.insert(all.end(), excused.begin() + static_cast<std::ptrdiff_t>(most), excused.end());
      excused.resize(most);
    }
    out_.missing = all.size();
    out_.excused = excused.size();
    if (all.empty()) return {};
    if (out_.due_since) out_.held_up_by = held_up_by(all, too_many);
    return describe(std::move(all), count);
  }

  struct missing_one {
    const k8s::object_key* kyma;
    std::string_view lacks;
    const cluster_state* state;
  };

  /// What a person has to look at first.
  static std::string_view held_up_by(const std::vector<missing_one>& all, bool too_many) {
    const auto any = [&](cluster_fault fault) {
      return std::ranges::any_of(all, [&](const missing_one& missing) {
        return missing.state->error && missing.state->error->fault == fault;
      });
    };
    if (any(cluster_fault::kcp)) return "FaultInKCP"_reason;
    if (any(cluster_fault::issuer)) return "FaultOfIssuer"_reason;
    if (any(cluster_fault::manager)) return "FaultOfManager"_reason;
    return too_many ? "TooManyRuntimesFail"_reason : "";
  }

  static std::string describe(std::vector<missing_one> all, std::size_t count) {
    const auto shown = std::min<std::size_t>(5, all.size());
    std::ranges::partial_sort(
        all, all.begin() + static_cast<std::ptrdiff_t>(shown), {},
        [](const auto& runtime) { return std::tie(runtime.kyma->ns, runtime.kyma->name); });
    auto words = std::to_string(all.size()) + " of " + std::to_string(count) + " runtimes";
    for (std::size_t i = 0; i < shown; ++i) {
      words += i == 0 ? ": " : ", ";
      words += to_string(*all[i].kyma) + " (" + std::string(all[i].lacks);
      if (const auto& error = all[i].state->error) {
        words += ": " + std::string(to_string(error->reason));
      }
      words += ")";
    }
    return words + (shown < all.size() ? " and others" : "");
  }

  void switch_server() {
    serve_root();
    did(rotation_step::switch_server);
    wait(rotation_phase::settled, {});
    out_.demand.reset();
    out_.deadline.reset();
    out_.due_since.reset();
    out_.held_up_by = {};
  }

  void finish() {
    // A certificate "without end" is clamped to the end of the clock's range.
    const auto margin = options_.expiry_margin + std::chrono::seconds(1);
    for (const auto& certificate : next_.bundle.authorities()) {
      if (certificate.not_after() < wall_time::max() - margin)
        recheck_at(certificate.not_after() + margin);
    }
    if (next_.bundle.empty()) {
      out_.steps.clear();
      return wait(rotation_phase::blocked,
                  "no authority is known for the bundle: " + next_.bundle_error);
    }
    if (out_.steps.empty()) return;
    next_.pair_error.clear();
    next_.bundle_error.clear();
    out_.write = std::move(next_);
  }

  void serve_root() {
    next_.pair = state_.root->pair;
    next_.served = state_.root->server;
  }

  void did(rotation_step step) {
    if (!out_.has(step)) out_.steps.push_back(step);
  }
  void wait(rotation_phase phase, std::string reason) {
    out_.phase = phase;
    out_.waiting = std::move(reason);
    out_.missing = 0;
  }
  void recheck_at(wall_time time) {
    if (time > exact_) out_.recheck_at = std::min(time, out_.recheck_at.value_or(time));
  }
  static std::string text(wall_time time) { return k8s::format_time(time); }

  const observed& state_;
  const cluster_states& clusters_;
  const rotation_options& options_;
  const wall_time exact_;
  const wall_time now_;  ///< whole seconds, as in the annotation
  gateway_content next_;
  bool added_ = false;
  bool full_ = false;
  rotation_plan out_;
};

}  // namespace

std::string_view name_of(rotation_phase phase) noexcept {
  constexpr std::string_view names[] = {"no_root", "settled", "grace", "distributing", "blocked"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view reason_of(rotation_phase phase) noexcept {
  if (phase == rotation_phase::no_root) return "RootSecretUnusable"_reason;
  return phase == rotation_phase::blocked ? "CARotationBlocked"_reason : "";
}

shortfall lacks(const cluster_state& of, const trust_demand& demand,
                const rotation_options& options, wall_time now) {
  shortfall out;
  if (!of.is_concerned()) return out;
  const auto& has = of.observed;
  const auto fresh = [&] {
    return has->client_issuer == demand.authority || has->client_issuer == demand.newest ||
           has->client_not_before > demand.since;
  };
  const auto in_effect = of.is_loaded ? of.since : of.since + options.propagation;
  if (!has) {
    out.reason = "not observed yet";
  } else if (!has->trusts(demand.authority)) {
    out.reason = "without the new CA";
  } else if (!fresh()) {
    out.reason = "with an old client certificate";
  } else if (now < in_effect) {
    out = {.reason = "not in effect yet", .recheck_at = in_effect};
  }
  const auto fails_since = of.own_fault_since();
  if (out.reason.empty() || !fails_since) return out;
  const auto excused_at = *fails_since + options.excuse_after;
  out.excused = excused_at <= now;
  if (!out.excused) out.recheck_at = std::min(excused_at, out.recheck_at.value_or(excused_at));
  return out;
}

wall_time switch_deadline(wall_time added, wall_time expires, const rotation_options& options) {
  const auto left = std::max<wall_time::duration>(expires - added, {});
  const auto last = expires - std::min<wall_time::duration>(options.before_expiry, left / 2);
  if (options.limit == std::chrono::seconds(0)) return last;
  return std::min(last, added + std::max(options.limit, options.grace));
}

bool rotation_plan::has(rotation_step step) const noexcept {
  return std::ranges::find(steps, step) != steps.end();
}

rotation_plan make_plan(const observed& state, const cluster_states& clusters,
                        const rotation_options& options, wall_time now) {
  return planner(state, clusters, options, now).make();
}

}  // namespace rw::gateway_secret
