#pragma once

#include "rw/reactors/certificates/state.hpp"
#include "rw/reactors/gateway_secret/rotation.hpp"
#include "rw/reactors/shared/cluster_state.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/reactors/watcher_installer/trust.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/certificates/controllers.hpp"
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
  std::chrono::seconds issuing = 12h;           ///< at most
  std::chrono::seconds out_of_reach = 24h * 3;  ///< at most, at a time
  double rotation_acts = 0.5;                   ///< chance at each turn
  rotation_options rotation = {.authorities = 400};
  watcher_installer::trust_delays delays = {};
  std::chrono::milliseconds kubelet = 60s;  ///< at most, until pods have a Secret
  bool pods_speak = false;                  ///< they report what they have loaded
  std::size_t forging = 0;                  ///< runtimes whose pods always say that they have it
  bool check_before_delivery = true;
  std::size_t runtimes = 5;
  std::size_t reconciles = 1;  ///< of any of them, at each turn
  // Of these, and not the same ones:
  std::size_t never_ready = 0;        ///< their pods never run
  std::size_t read_only = 0;          ///< no write succeeds once they are installed
  std::size_t flaky = 0;              ///< every second run of their issuer fails
  std::chrono::seconds rsa_for = 0s;  ///< from the beginning; then ECDSA
};

/// A control plane with its runtimes, on a clock of its own: roots change, certificates are issued
/// in either issuer_kind, installers and the rotation act, everything late, interrupted, restarted
/// and with clocks that differ; API servers and kubelets follow later. Its decisions are those of
/// the code under test; what lies between is as simple as can be. After each change it checks what
/// must hold at every instant.
class landscape {
 public:
  landscape(std::uint64_t seed, climate with)
      : random_(seed), with_(with), runtimes_(with.runtimes) {
    change_root();
    rotate();
    for (std::size_t i = 0; i < runtimes_.size(); ++i) {
      auto& one = runtimes_[i];
      one.name = "r" + std::to_string(i);
      one.controller = {.kind = i % 2 == 0 ? certificates::issuer_kind::cert_manager
                                           : certificates::issuer_kind::gardener,
                        .works_from = day0,
                        .fails_at_times = i < with_.flaky};
      one.never_ready = !one.controller.fails_at_times && i < with_.flaky + with_.never_ready;
      one.certificate = certificates::test::issued_certificate(now_);
      issue(one);
    }
    for (int round = 0; round < 2; ++round) settle();
    for (std::size_t i = 0; i < with_.read_only; ++i) {
      runtimes_[runtimes_.size() - 1 - i].read_only = true;
    }
    for (std::size_t i = 0; i < with_.forging; ++i) runtimes_[i].forges = true;
    checking_ = true;
  }

  /// Lives through the history; ends early when something was broken.
  void run() {
    const auto end = now_ + with_.horizon;
    while (now_ < end && broken.empty()) {
      pass(likely(0.2) ? ms(900) : likely(0.2) ? ms(60 * 1000) : ms(4 * 3600 * 1000));
      happen();
    }
  }

  /// No root changes any more: everything must come to rest.
  bool comes_to_rest() {
    for (int round = 0; round < 30 && broken.empty(); ++round) {
      settle();
      if (gateway_->served == roots_.back().certificate && last_.phase == rotation_phase::settled)
        return true;
      now_ += with_.read_only > 0 ? 24h : 4h;
    }
    return false;
  }

  std::string broken;  ///< what did not hold; empty: everything did
  std::size_t switches = 0;
  std::size_t changes = 0;
  std::size_t reissues = 0;
  std::size_t dropped = 0;
  std::size_t failures = 0;     ///< of issuers
  std::size_t heard = 0;        ///< reconciles that had the pods' word
  std::size_t left_behind = 0;  ///< switches that did not wait for all

 private:
  /// What pods, or an API server, have: they follow what was written.
  struct follower {
    std::optional<wall_time> at = {};  ///< when they get it
    void written(wall_time when) {
      if (!at || when < *at) at = when;
    }
    bool due(wall_time now) {
      const bool is = at && *at <= now;
      if (is) at.reset();
      return is;
    }
  };

  struct runtime {
    std::string name;
    bool never_ready = false;
    bool read_only = false;
    bool forges = false;
    // In KCP.
    boost::json::value certificate;
    certificates::test::controller_model controller{certificates::issuer_kind::cert_manager};
    tls::key_pair issued;
    wall_time issued_at;
    std::string secret_version = "0";
    // On the runtime cluster.
    watcher_installer::observed_trust has;
    follower kubelet;
    follower api_server;
    tls::ca_bundle webhook_ca;  ///< as its API server knows it
    tls::ca_bundle secret_ca;   ///< as its pod does
    std::optional<tls::certificate> client;
    std::optional<wall_time> away_since;
    wall_time back_at;
    bool excused = false;  ///< was given up; until it is installed again
    // What the manager knows.
    std::vector<pod_report> reports = {};  ///< of its only pod
    certificates::judged_certificate judged;
    std::string judged_by;
    wall_time judged_at;
  };

  static std::chrono::milliseconds ms(std::int64_t most) { return std::chrono::milliseconds(most); }
  std::uint64_t draw(std::uint64_t below) { return below == 0 ? 0 : random_() % below; }
  bool likely(double chance) { return static_cast<double>(random_() % 10000) < chance * 10000; }
  std::chrono::milliseconds up_to(std::chrono::milliseconds most) {
    return std::chrono::milliseconds(draw(static_cast<std::uint64_t>(most.count())));
  }
  std::chrono::seconds skew(std::uint64_t most = 120) {
    return std::chrono::seconds(draw(2 * most + 1)) - std::chrono::seconds(most);
  }
  tls::key_type key() const {
    return now_ < day0 + with_.rsa_for ? tls::key_type::rsa_2048 : tls::key_type::ecdsa_p256;
  }

  void pass(std::chrono::milliseconds most) {
    const auto by = up_to(most);
    now_ += by;
    const bool aged = now_ > rooted_at_ + with_.root_validity * 2 / 3;
    if (aged || likely(std::chrono::duration<double>(by) / with_.root_changes)) change_root();
    for (auto& each : runtimes_) {
      work_on_certificate(each);
      move_about(each, by);
      follow(each);
    }
    check();
  }

  /// What the issuer's controller does.
  void work_on_certificate(runtime& one) {
    using certificates::validity_in_status;
    auto& controller = one.controller;
    const auto before = validity_in_status(one.certificate, controller.kind)->not_before;
    const auto started = controller.started;
    controller.takes = std::chrono::ceil<std::chrono::seconds>(up_to(with_.issuing));
    controller.step(one.certificate, now_);
    const bool renewed = validity_in_status(one.certificate, controller.kind)->not_before > before;
    if (controller.started > started && controller.fails(now_)) ++failures;
    if (renewed) return issue(one);
    if (now_ - one.issued_at < 24h * 30 || controller.begun) return;
    one.certificate = certificates::test::issued_certificate(now_);  // by itself, in time
    issue(one);
  }

  /// kubelet and API server come after what was written. In which order is a matter of luck.
  void follow(runtime& one) {
    const bool pod_first = likely(0.5);
    if (pod_first) follow_secret(one);
    if (one.api_server.due(now_)) one.webhook_ca = one.has.webhooks.front();
    check();
    if (!pod_first) follow_secret(one);
    check();
  }
  void follow_secret(runtime& one) {
    if (!one.kubelet.due(now_) || one.never_ready) return;
    one.secret_ca = one.has.bundle;
    one.client = parsed(one.has.certificate);
    if (likely(0.8)) report(one);  // some heartbeats are lost
    one.excused = one.excused && !one.secret_ca.issuer_of(*gateway_->served);
    check();
  }

  void report(runtime& one) {
    if (!with_.pods_speak || !one.client) return;
    one.reports = {{.pod = "p",
                    .ca_digest = one.secret_ca.digest(),
                    .certificate_digest = one.client->fingerprint(),
                    .heard = now_ + clock_skew_}};
  }

  watcher_installer::pods_word word_of(const runtime& one) const {
    if (one.forges) return {.bundle = true, .certificate = true, .managers = true};
    return watcher_installer::word_of({"p"}, one.reports, one.has);
  }

  void move_about(runtime& one, std::chrono::milliseconds by) {
    if (one.away_since) {
      if (now_ - *one.away_since >= with_.rotation.excuse_after) one.excused = true;
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
    for (std::size_t i = 0; i < with_.reconciles; ++i) reconcile(runtimes_[draw(runtimes_.size())]);
  }

  void settle() {
    issuer_root_ = roots_.size() - 1;
    seen_root_ = roots_.size() - 1;
    know_all();
    rotate();
    view_ = view_of(*gateway_);
    for (auto& each : runtimes_) {
      each.away_since.reset();
      each.judged_by.clear();
    }
    for (int round = 0; round < 6; ++round) {
      for (auto& each : runtimes_) reconcile(each);
      now_ += 2min;
      for (auto& each : runtimes_) {
        work_on_certificate(each);
        follow(each);
      }
    }
  }

  void change_root() {
    const auto name = "root" + std::to_string(roots_.size());
    roots_.emplace_back(name, now_ + skew(), with_.root_validity, key());
    rooted_at_ = now_;
    if (likely(0.5)) issuer_root_ = roots_.size() - 1;
    ++changes;
  }

  /// Another replica leads: it has seen nothing yet, and its clock is its own.
  void restart() {
    board_ = cluster_states();
    last_whole_.reset();
    clock_skew_ = skew(10);
    for (auto& each : runtimes_) each.reports.clear();
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
    if (last_.has(rotation_step::switch_server)) {
      ++switches;
      if (!last_.left_behind.empty()) ++left_behind;
    }
    if (last_.has(rotation_step::drop_expired)) ++dropped;
    if (last_.write) gateway_ = read_gateway_secret(write_gateway_secret(*last_.write, {}));
    last_whole_ = gateway_;
    check();
  }

  void issue(runtime& to) {
    to.issued_at = now_;
    const auto from = now_ + (likely(0.5) ? 0s : skew());
    to.issued = roots_[issuer_root_].client(to.name, from, 24h * 60, key());
    to.secret_version = std::to_string(std::stoul(to.secret_version) + 1);
  }

  static trust_bundle view_of(const gateway_content& gateway) {
    return {.authorities = gateway.bundle, .added_at = gateway.ca_added_at};
  }

  /// One turn of a runtime's installer; it may be interrupted after each write.
  void reconcile(runtime& one) {
    if (!view_) return;
    const auto& state = judged(one);
    const auto now = now_ + clock_skew_;
    if (state.must_be_reissued &&
        certificates::test::ask_in_turn(one.certificate, one.controller.kind, state.cause, now)) {
      ++reissues;
    }
    if (one.away_since)
      return board_.failing(kyma(one.name), status_reason::runtime_unreachable,
                            cluster_fault::tenant, now);
    board_.converged(kyma(one.name));
    if (one.read_only) return;
    if (!with_.check_before_delivery) {
      one.has.certificate = one.issued.certificate;
      one.has.key = one.issued.key;
      one.kubelet.written(now_ + up_to(60s));
    }
    watcher_installer::wanted_trust wanted{.bundle = view_->authorities};
    if (is_ready(state)) {
      wanted.certificate = state.current.certificate;
      wanted.key = state.current.key;
    }
    if (likely(0.1)) report(one);
    one.has.loaded = word_of(one);
    if (one.has.loaded.bundle && one.has.loaded.certificate) ++heard;
    const auto step = watcher_installer::next_step(wanted, one.has, with_.delays, now);
    if (!step.certificate.empty()) install(one, step);
  }

  static bool is_ready(const certificate_state& one) {
    return one.state == certificate_state::kind::ready;
  }

  /// Judging checks keys and signatures, so an answer is kept for a while if nothing changed.
  const certificates::judged_certificate& judged(runtime& one) {
    const auto basis = one.secret_version + " " + view_->authorities.digest() + " " +
                       k8s::format_time(*view_->added_at);
    const bool settled = is_ready(one.judged) && !one.judged.must_be_reissued;
    if (one.judged_by == basis && now_ - one.judged_at < (settled ? 24h : 1h)) return one.judged;
    boost::json::value secret =
        boost::json::object{{"metadata", {{"resourceVersion", one.secret_version}}}};
    k8s::set_secret_data(secret, "tls.crt", one.issued.certificate);
    k8s::set_secret_data(secret, "tls.key", one.issued.key);
    one.judged_by = basis;
    one.judged_at = now_;
    one.judged = certificates::judge({one.name, one.certificate, secret, &*view_}, pairs_,
                                     one.controller.kind, {}, now_ + clock_skew_);
    return one.judged;
  }

  /// Writes the Secret and then the webhooks; may be interrupted in between.
  void install(runtime& one, const watcher_installer::trust_step& step) {
    auto& has = one.has;
    if (has.bundle != step.bundle || has.certificate != step.certificate) {
      has.bundle = step.bundle;
      has.certificate = step.certificate;
      has.key = step.key;
      has.certificate_since = k8s::parse_rfc3339(step.certificate_since);
      one.kubelet.written(now_ + up_to(with_.kubelet));
    }
    if (likely(0.1)) return;
    if (has.webhooks.empty() || has.webhooks.front() != step.bundle) {
      has.webhooks.assign(2, step.bundle);
      one.api_server.written(now_ + up_to(10s));
    }
    has.bundle_since = k8s::parse_rfc3339(step.bundle_since);
    if (likely(0.1)) return;
    board_.observed(kyma(one.name), *watcher_installer::summary_of(has), now_ + clock_skew_,
                    word_of(one).bundle && word_of(one).certificate);
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
      if (!each.client || each.read_only || each.forges) continue;
      const auto hold = [&](bool good, const char* what) {
        if (!good && broken.empty()) broken = each.name + ": " + what;
      };
      hold(trusts(gateway_->bundle, *each.client), "the gateway refuses its client certificate");
      const bool called = !each.webhook_ca.empty();
      hold(!called || trusts(each.webhook_ca, *each.client), "its API server refuses its webhook");
      const bool reached = trusts(each.secret_ca, served) && served.not_after() >= now_;
      hold(reached || each.excused, "it refuses the gateway's server certificate");
    }
  }

  std::mt19937_64 random_;
  const climate with_;
  wall_time now_ = day0;
  std::chrono::seconds clock_skew_{0};
  std::deque<root> roots_;
  wall_time rooted_at_;
  std::size_t issuer_root_ = 0;
  std::size_t seen_root_ = 0;
  std::optional<gateway_content> gateway_;
  std::optional<gateway_content> last_whole_;
  std::optional<trust_bundle> view_;  ///< the installer's, which may be behind
  certificates::usable_pairs pairs_;
  cluster_states board_;
  rotation_plan last_;
  std::vector<runtime> runtimes_;
  std::map<std::string, std::string> issuers_;
  bool checking_ = false;
};

}  // namespace rw::gateway_secret::test
