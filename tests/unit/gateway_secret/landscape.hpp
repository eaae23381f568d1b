#pragma once

#include "reactors/certificates/state.hpp"
#include "reactors/gateway_secret/rotation.hpp"
#include "reactors/rollout.hpp"
#include "reactors/trust_bundle.hpp"
#include "reactors/watcher_installer/trust.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/gateway_secret/world.hpp"
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace rw::gateway_secret::test {

/// What happens in one history, and how often.
struct climate {
  std::chrono::seconds horizon = 24h * 60;
  std::chrono::seconds root_changes = 24h * 5;  ///< on average
  std::chrono::seconds root_validity = 24h * 75;
  std::chrono::seconds issuing = 12h;           ///< at most, from the request
  std::chrono::seconds out_of_reach = 24h * 3;  ///< at most, at a time
  double rotation_acts = 0.5;                   ///< chance at each turn
  rotation_options rotation = {.authorities = 400};
  bool check_before_delivery = true;
};

/// A control plane with its runtimes, on a clock of its own: roots change, certificates are issued,
/// installers and the rotation act, everything late, interrupted, restarted and with clocks that
/// differ. Its decisions are those of the code under test; what lies between is as simple as can
/// be. After each change it checks what must hold at every instant.
class landscape {
 public:
  landscape(std::uint64_t seed, climate with) : random_(seed), with_(with), runtimes_(5) {
    change_root();
    rotate();
    for (std::size_t i = 0; i < runtimes_.size(); ++i) {
      runtimes_[i].name = "r" + std::to_string(i);
      issue(runtimes_[i]);
    }
    settle();
    checking_ = true;
  }

  /// Lives through the history; ends early when something was broken.
  void run() {
    const auto end = now_ + with_.horizon;
    while (now_ < end && broken.empty()) {
      pass(likely(0.2) ? ms(900) : ms(4 * 3600 * 1000));
      happen();
    }
  }

  /// No root changes any more: everything must come to rest.
  bool comes_to_rest() {
    for (int round = 0; round < 30 && broken.empty(); ++round) {
      now_ += 4h;
      settle();
    }
    return gateway_->served == roots_.back().certificate && last_.where == phase::settled;
  }

  std::string broken;  ///< what did not hold; empty: everything did
  std::size_t switches = 0;
  std::size_t changes = 0;
  std::size_t reissues = 0;
  std::size_t dropped = 0;

 private:
  struct runtime {
    std::string name;
    // In KCP.
    tls::key_pair issued;
    std::optional<time_point> issuing_at;
    time_point issued_at;
    std::string secret_version = "0";
    // On the runtime cluster.
    tls::ca_bundle webhook_ca;
    tls::ca_bundle secret_ca;
    std::optional<tls::certificate> client;
    bool installed = false;
    std::optional<time_point> away_since;
    time_point back_at;
    bool excused = false;  ///< was given up; until it is installed again
    // What the installer knows.
    certificates::certificate_state judged;
    std::string judged_by;
    time_point judged_at;
  };

  static std::chrono::milliseconds ms(std::int64_t most) { return std::chrono::milliseconds(most); }
  std::uint64_t draw(std::uint64_t below) { return below == 0 ? 0 : random_() % below; }
  bool likely(double chance) { return static_cast<double>(random_() % 10000) < chance * 10000; }
  std::chrono::milliseconds up_to(std::chrono::milliseconds most) {
    return std::chrono::milliseconds(draw(static_cast<std::uint64_t>(most.count())));
  }
  std::chrono::seconds skew() { return std::chrono::seconds(draw(241)) - 120s; }

  void pass(std::chrono::milliseconds most) {
    const auto by = up_to(most);
    now_ += by;
    if (likely(std::chrono::duration<double>(by) / with_.root_changes)) change_root();
    for (auto& each : runtimes_) {
      if (each.issuing_at && *each.issuing_at <= now_) issue(each);
      if (now_ - each.issued_at > 24h * 30 && !each.issuing_at) each.issuing_at = now_;
      move_about(each, by);
    }
    check();
  }

  void move_about(runtime& one, std::chrono::milliseconds by) {
    if (one.away_since) {
      if (now_ - *one.away_since >= with_.rotation.unreachable_after) one.excused = true;
      if (now_ >= one.back_at) one.away_since.reset();
    } else if (likely(std::chrono::duration<double>(by) / std::chrono::seconds(24h * 10))) {
      one.away_since = now_;
      one.back_at = now_ + up_to(with_.out_of_reach);
    }
  }

  void happen() {
    if (likely(0.01)) restart();
    if (likely(with_.rotation_acts)) rotate();
    if (likely(0.3)) issuer_root_ = roots_.size() - 1;
    if (likely(0.5)) view_ = view_of(*gateway_);
    if (!board_.is_complete() && likely(0.5)) know_all();
    reconcile(runtimes_[draw(runtimes_.size())]);
  }

  void settle() {
    issuer_root_ = roots_.size() - 1;
    seen_root_ = roots_.size() - 1;
    know_all();
    rotate();
    view_ = view_of(*gateway_);
    for (auto& each : runtimes_) {
      if (each.issuing_at) issue(each);
      each.away_since.reset();
      reconcile(each);
    }
  }

  void change_root() {
    const auto name = "root" + std::to_string(roots_.size());
    roots_.emplace_back(name, now_ + skew(), with_.root_validity);
    if (likely(0.5)) issuer_root_ = roots_.size() - 1;
    ++changes;
  }

  /// Another replica leads: it has seen nothing yet, and its clock is its own.
  void restart() {
    board_ = rollout_tracker();
    last_whole_.reset();
    clock_skew_ = skew();
  }
  void know_all() {
    for (const auto& each : runtimes_) board_.expect(kyma(each.name));
    board_.complete();
  }

  /// One turn of the rotation; it may not have seen the newest root yet.
  void rotate() {
    if (likely(0.8)) seen_root_ = roots_.size() - 1;
    const observed world{
        .root = roots_[seen_root_].secret(), .gateway = gateway_, .last_whole = last_whole_};
    last_ = make_plan(world, board_, with_.rotation, now_ + clock_skew_);
    if (last_.has(step::switch_server)) ++switches;
    if (last_.has(step::drop_expired)) ++dropped;
    if (last_.write) gateway_ = read_gateway_secret(write_gateway_secret(*last_.write, {}));
    last_whole_ = gateway_;
    check();
  }

  void issue(runtime& to) {
    to.issuing_at.reset();
    to.issued_at = now_;
    const auto from = now_ + (likely(0.5) ? 0s : skew());
    to.issued = roots_[issuer_root_].client(to.name, from);
    to.secret_version = std::to_string(std::stoul(to.secret_version) + 1);
  }

  static trust_bundle view_of(const gateway_content& gateway) {
    return {.authorities = gateway.bundle, .added_at = gateway.ca_added_at};
  }

  /// One turn of a runtime's installer; it may be interrupted after each write.
  void reconcile(runtime& one) {
    if (!view_) return;
    const auto& state = judged(one);
    if (state.must_be_reissued && !one.issuing_at) {
      one.issuing_at = now_ + up_to(with_.issuing);
      ++reissues;
    }
    if (one.away_since) return board_.unreachable(kyma(one.name), now_);
    if (state.current) {
      install(one, state.current->authorities, state.current->leaf);
    } else if (!with_.check_before_delivery) {
      install(one, view_->authorities, parsed(one.issued.certificate));
    }
  }

  /// Judging checks keys and signatures, so an answer is kept for a while if nothing changed.
  const certificates::certificate_state& judged(runtime& one) {
    const auto basis = one.secret_version + " " + view_->authorities.digest() + " " +
                       k8s::format_time(*view_->added_at);
    const bool settled = one.judged.current && !one.judged.must_be_reissued;
    if (one.judged_by == basis && now_ - one.judged_at < (settled ? 24h : 1h)) return one.judged;
    boost::json::value secret =
        boost::json::object{{"metadata", {{"resourceVersion", one.secret_version}}}};
    k8s::set_secret_data(secret, "tls.crt", one.issued.certificate);
    k8s::set_secret_data(secret, "tls.key", one.issued.key);
    one.judged_by = basis;
    one.judged_at = now_;
    one.judged =
        certificates::judge({.runtime_id = one.name, .secret = secret, .trust = &*view_}, pairs_,
                            certificates::dialect::cert_manager, {}, now_ + clock_skew_);
    return one.judged;
  }

  void install(runtime& one, const tls::ca_bundle& bundle, const tls::certificate& client) {
    one.webhook_ca = bundle;
    check();
    if (likely(0.1)) return;
    one.secret_ca = bundle;
    check();
    if (likely(0.1)) return;
    one.client = client;
    one.installed = true;
    one.excused = false;
    const auto trust = watcher_installer::summary_of(
        {.bundle = one.secret_ca, .certificate = one.client->pem(), .webhooks = {one.webhook_ca}});
    board_.observed(kyma(one.name), *trust, now_);
    check();
  }

  bool trusts(const tls::ca_bundle& bundle, const tls::certificate& leaf) {
    const auto issuer = issuer_of(leaf);
    return std::ranges::any_of(bundle.authorities(), [&](const tls::certificate& one) {
      return one.fingerprint() == issuer && one.not_after() >= now_;
    });
  }
  /// Looked for once, among all roots that ever were.
  const std::string& issuer_of(const tls::certificate& leaf) {
    auto& known = issuers_[leaf.fingerprint()];
    for (auto at = roots_.rbegin(); known.empty() && at != roots_.rend(); ++at) {
      if (tls::is_issued_by(leaf, at->certificate)) known = at->certificate.fingerprint();
    }
    return known;
  }

  void check() {
    if (!checking_ || !broken.empty()) return;
    const auto& served = *gateway_->served;
    for (const auto& each : runtimes_) {
      if (!each.installed) continue;
      const auto hold = [&](bool good, const char* what) {
        if (!good && broken.empty()) broken = each.name + ": " + what;
      };
      hold(trusts(gateway_->bundle, *each.client), "the gateway refuses its client certificate");
      hold(trusts(each.webhook_ca, *each.client), "its API server refuses its webhook");
      const bool reached = trusts(each.secret_ca, served) && served.not_after() >= now_;
      hold(reached || each.excused, "it refuses the gateway's server certificate");
    }
  }

  std::mt19937_64 random_;
  const climate with_;
  time_point now_ = day0;
  std::chrono::seconds clock_skew_{0};
  std::deque<root> roots_;
  std::size_t issuer_root_ = 0;
  std::size_t seen_root_ = 0;
  std::optional<gateway_content> gateway_;
  std::optional<gateway_content> last_whole_;
  std::optional<trust_bundle> view_;  ///< the installer's, which may be behind
  certificates::usable_pairs pairs_;
  rollout_tracker board_;
  plan last_;
  std::vector<runtime> runtimes_;
  std::map<std::string, std::string> issuers_;
  bool checking_ = false;
};

}  // namespace rw::gateway_secret::test
