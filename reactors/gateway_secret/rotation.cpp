#include "reactors/gateway_secret/rotation.hpp"

#include "k8s/types.hpp"
#include "reactors/gateway_secret/gate.hpp"

#include <algorithm>
#include <ranges>
#include <unordered_set>
#include <utility>

namespace rw::gateway_secret {
namespace {

bool expired(const tls::certificate& one, time_point now) {
  return one.not_after() < now;
}

/// Makes one plan; each member function looks at one concern, in the order of `make`.
class planner {
 public:
  planner(const observed& world, const rollout_board& board, const rotation_options& options,
          time_point now)
      : world_(world),
        board_(board),
        options_(options),
        exact_(now),
        now_(std::chrono::floor<std::chrono::seconds>(now)) {}

  plan make() {
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
  /// False: there is no gateway Secret, and nothing to make one of.
  bool begin() {
    if (world_.gateway) {
      next_ = *world_.gateway;
      return true;
    }
    if (!world_.root) {
      wait(phase::no_root, "cannot make the gateway Secret: " + world_.root_problem);
      return false;
    }
    if (expired(world_.root->server, exact_)) {
      wait(phase::blocked, "cannot make the gateway Secret: the root certificate has expired");
      return false;
    }
    did(step::create);
    if (world_.last_whole) {
      next_ = *world_.last_whole;
    } else {
      serve_root();
    }
    return true;
  }

  void repair_pair() {
    if (next_.served) return;
    const auto& before = world_.last_whole;
    if (before && before->served && !expired(*before->served, exact_)) {
      next_.pair = before->pair;
      next_.served = before->served;
    } else if (world_.root && !expired(world_.root->server, exact_)) {
      serve_root();
    } else {
      return;
    }
    did(step::repair_pair);
  }

  void repair_bundle() {
    if (next_.bundle_problem.empty()) return;
    auto left = std::exchange(next_.bundle, {});
    if (world_.last_whole) next_.bundle = world_.last_whole->bundle;
    for (const auto& one : left.authorities()) next_.bundle.append(one);
    did(step::repair_bundle);
  }

  void add_authorities() {
    if (!world_.root) return;
    for (const auto& one : world_.root->authorities | std::views::reverse) {
      if (next_.bundle.contains(one) || expired(one, exact_)) continue;
      if (next_.bundle.size() >= options_.authorities) {
        full_ = true;
      } else {
        next_.bundle.prepend(one);
        added_ = true;
      }
    }
    if (added_ && !out_.has(step::create)) did(step::add_authority);
  }

  /// Every runtime must find the authority of what the gateway serves in the bundle that it gets.
  /// It is nothing that was added just now, so caAddedToBundleAt stays.
  void repair_authority_of_served() {
    if (!next_.served || expired(*next_.served, exact_)) return;
    const auto& served = *next_.served;
    if (next_.bundle.contains(served) || next_.bundle.issuer_of(served) != nullptr) return;
    std::vector<tls::certificate> known{served};
    if (world_.root) std::ranges::copy(world_.root->authorities, std::back_inserter(known));
    if (world_.last_whole) {
      std::ranges::copy(world_.last_whole->bundle.authorities(), std::back_inserter(known));
    }
    const auto at = std::ranges::find_if(
        known, [&](const tls::certificate& one) { return tls::is_issued_by(served, one); });
    if (at == known.end()) return;
    next_.bundle.append(*at);
    did(step::repair_bundle);
  }

  void set_time() {
    if (next_.bundle.empty()) return;
    const bool sound = next_.ca_added_at && *next_.ca_added_at <= now_ + options_.clock_skew;
    if (added_) {
      next_.ca_added_at = sound ? std::max(*next_.ca_added_at, now_) : now_;
    } else if (!sound) {
      next_.ca_added_at = now_;
      did(step::repair_time);
    }
  }

  void drop_expired() {
    const auto limit = exact_ - options_.expiry_margin;
    const auto old = [&](const tls::certificate& one) { return expired(one, limit); };
    if (std::ranges::none_of(next_.bundle.authorities(), old) || !board_.is_complete()) return;
    bool all_seen = true;
    std::unordered_set<std::string> used;
    board_.for_each([&](const k8s::object_key&, const rollout_board::entry& entry) {
      all_seen = all_seen && entry.seen;
      if (entry.seen) used.insert(entry.seen->client_issuer);
    });
    if (!all_seen) return;
    const auto keep = [&](const tls::certificate& one) {
      return used.contains(one.fingerprint()) || is_of_root(one) || is_of_served(one);
    };
    if (!next_.bundle.drop_expired(limit, keep).empty()) did(step::drop_expired);
  }

  bool is_of_root(const tls::certificate& one) const {
    return world_.root &&
           std::ranges::find(world_.root->authorities, one) != world_.root->authorities.end();
  }
  bool is_of_served(const tls::certificate& one) const {
    return next_.served && (*next_.served == one || tls::is_issued_by(*next_.served, one));
  }

  void consider_switch() {
    if (!world_.root) return wait(phase::no_root, world_.root_problem);
    const auto& root = world_.root->server;
    if (full_) {
      return wait(phase::blocked, "the bundle has " + std::to_string(next_.bundle.size()) +
                                      " authorities and takes no more");
    }
    if (!next_.served) {
      return wait(phase::blocked, "the gateway has nothing to serve with: " + next_.pair_problem);
    }
    if (expired(root, exact_)) return wait(phase::blocked, "the root certificate has expired");
    if (*next_.served == root) return wait(phase::settled, {});
    if (root.not_before() > exact_) {
      look_again(root.not_before());
      return wait(phase::grace,
                  "the root certificate is not valid before " + text(root.not_before()));
    }
    if (expired(*next_.served, exact_)) return switch_server();
    look_again(next_.served->not_after());
    if (!is_due() || !is_everywhere() || added_) return;
    switch_server();
  }

  /// Has enough time passed?
  bool is_due() {
    const auto due = *next_.ca_added_at + options_.grace;
    const auto urgent = next_.served->not_after() - options_.urgent;
    look_again(due);
    if (!options_.time_only) look_again(urgent);
    if (exact_ >= due || (!options_.time_only && exact_ >= urgent)) {
      wait(phase::distributing, {});
      return true;
    }
    wait(phase::grace, "the grace period ends at " + text(due));
    is_everywhere();
    return false;
  }

  /// Have all runtimes what they need? Says who has not.
  bool is_everywhere() {
    if (options_.time_only) return true;
    const auto answer = ask_gate(board_,
                                 {.authority = world_.root->server.fingerprint(),
                                  .newest = next_.bundle.authorities().front().fingerprint(),
                                  .since = *next_.ca_added_at,
                                  .unreachable_after = options_.unreachable_after},
                                 exact_);
    if (answer.open) return true;
    out_.missing = answer.missing;
    if (answer.look_again) look_again(*answer.look_again);
    if (!out_.waiting.empty()) out_.waiting += "; ";
    out_.waiting += "missing: " + answer.who;
    return false;
  }

  void switch_server() {
    serve_root();
    did(step::switch_server);
    wait(phase::settled, {});
  }

  void finish() {
    // A certificate "without end" is clamped to the end of the clock's range.
    const auto margin = options_.expiry_margin + std::chrono::seconds(1);
    for (const auto& one : next_.bundle.authorities()) {
      if (one.not_after() < time_point::max() - margin) look_again(one.not_after() + margin);
    }
    if (next_.bundle.empty()) {
      out_.steps.clear();
      return wait(phase::blocked, "no authority is known for the bundle: " + next_.bundle_problem);
    }
    if (out_.steps.empty()) return;
    next_.pair_problem.clear();
    next_.bundle_problem.clear();
    out_.write = std::move(next_);
  }

  void serve_root() {
    next_.pair = world_.root->pair;
    next_.served = world_.root->server;
  }

  void did(step what) {
    if (!out_.has(what)) out_.steps.push_back(what);
  }
  void wait(phase where, std::string why) {
    out_.where = where;
    out_.waiting = std::move(why);
    out_.missing = 0;
  }
  void look_again(time_point when) {
    if (when > exact_) out_.look_again = std::min(when, out_.look_again.value_or(when));
  }
  static std::string text(time_point when) { return k8s::format_time(when); }

  const observed& world_;
  const rollout_board& board_;
  const rotation_options& options_;
  const time_point exact_;
  const time_point now_;  ///< whole seconds, as they are written
  gateway_content next_;
  bool added_ = false;
  bool full_ = false;
  plan out_;
};

}  // namespace

std::string_view name_of(step what) noexcept {
  switch (what) {
    case step::create:
      return "create";
    case step::repair_pair:
      return "repair_pair";
    case step::repair_bundle:
      return "repair_bundle";
    case step::repair_time:
      return "repair_time";
    case step::add_authority:
      return "add_authority";
    case step::drop_expired:
      return "drop_expired";
    case step::switch_server:
      return "switch_server";
  }
  return "";
}

std::string_view name_of(phase what) noexcept {
  switch (what) {
    case phase::no_root:
      return "no_root";
    case phase::settled:
      return "settled";
    case phase::grace:
      return "grace";
    case phase::distributing:
      return "distributing";
    case phase::blocked:
      return "blocked";
  }
  return "";
}

bool plan::has(step what) const noexcept {
  return std::ranges::find(steps, what) != steps.end();
}

plan make_plan(const observed& world, const rollout_board& board, const rotation_options& options,
               time_point now) {
  return planner(world, board, options, now).make();
}

}  // namespace rw::gateway_secret
