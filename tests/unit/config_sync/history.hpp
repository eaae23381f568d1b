#pragma once

#include "reactors/content_digest.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/config_sync/cluster.hpp"
#include "tests/unit/config_sync/kim.hpp"
#include "tests/unit/k8s/chance.hpp"
#include "tests/unit/k8s/journal.hpp"
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rw::config_sync::test {

using namespace std::chrono_literals;

/// One Runtime's life, as far as the author of the history knows it.
struct life {
  bool suspended = false;
  std::string mode = "signal";
  int returns = 0;  ///< to a mode that is signalled
};

/// Everything happens by chance, again and again for some minutes, with rest in between: sources
/// change, come and go, Runtimes come, go, are suspended and change their mode, somebody marks one
/// by hand, requests fail, the reactor ends and begins anew, its record is lost; and a KIM
/// (kim.hpp) takes marks off.
class history {
 public:
  explicit history(std::uint64_t seed) : chance_(seed), here_(options()) {
    here_.faults([this](const std::string& verb, const std::string&) { return fault(verb); });
    for (const auto which : all_sources) contents_[which];
    for (const auto which : all_sources) {
      become(which, "");
      if (chance_.likely(0.8)) become(which, "c0");
    }
    kim_ = std::make_unique<kim>(here_, past_, chance_.draw(1u << 30), habits_);
    for (int i = 0; i < 5; ++i) add_runtime();
    pass(2min);
    start();
  }

  void run() {
    for (int phase = 0; phase < 6 && wrong.empty(); ++phase) {
      faulty_ = chance_.likely(0.7);
      const auto end = here_.clock.now() + 4min;
      while (here_.clock.now() < end) {
        happen();
        pass(chance_.up_to(chance_.likely(0.1) ? 1min : 10s));
      }
      if (chance_.likely(0.5)) stir();
      come_to_rest();
      stir();  // when nobody has anything else to do
      come_to_rest();
    }
    rest();
  }

  std::string wrong;  ///< what did not hold; empty: everything did
  double marks = 0;
  std::size_t states = 0;
  std::size_t restarts = 0;
  std::size_t reconciles = 0;
  std::string journal() const { return happened_.tail(); }

 private:
  sync_options options() {
    struct combination {
      mark_forms sets, reads, takes;
    };
    constexpr mark_forms annotation{.annotation = true};
    constexpr mark_forms label{.label = true};
    constexpr mark_forms both{.annotation = true, .label = true};
    constexpr std::array all{combination{both, annotation, annotation},
                             combination{both, label, label}, combination{both, annotation, both},
                             combination{annotation, annotation, annotation},
                             combination{label, label, label}};
    const auto& one = all.at(chance_.draw(all.size()));
    if (chance_.likely(0.5)) habits_.work = 3s;
    habits_.reads = one.reads;
    habits_.takes = one.takes;
    return {.forms = one.sets};
  }

  k8s::devserver::fault fault(const std::string& verb) {
    k8s::devserver::fault out;
    if (!faulty_) return out;
    if (chance_.likely(0.1)) out.latency = std::chrono::milliseconds(chance_.draw(5000));
    if (chance_.likely(0.1)) {
      constexpr std::array statuses{409U, 429U, 500U, 503U, 504U};
      out.status = statuses.at(chance_.draw(statuses.size()));
    }
    out.drop = chance_.likely(0.05);
    if (verb == "watch" && chance_.likely(0.4)) {
      out.events = static_cast<unsigned>(chance_.draw(10));
    }
    return out;
  }

  /// The author's own requests meet no faults.
  template <class Action>
  void undisturbed(Action action) {
    const bool were = std::exchange(faulty_, false);
    action();
    faulty_ = were;
  }

  void happen() {
    const auto what = chance_.draw(100);
    undisturbed([&] {
      if (what < 30) {
        change(all_sources.at(chance_.draw(all_sources.size())));
      } else if (what < 40) {
        stop_or_start();
      } else if (what < 45) {
        add_runtime();
      } else if (!lives_.empty()) {
        auto at = lives_.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(chance_.draw(lives_.size())));
        happen_to(at->first, at->second, what);
      }
    });
  }

  void come_to_rest() {
    faulty_ = false;
    if (!here_.is_running()) start();
    pass(15min);
    judge();
  }

  /// Changes in quick succession, while runtimes are worked on.
  void stir() {
    for (auto times = 1 + chance_.draw(3); times > 0; --times) {
      undisturbed([&] {
        change(all_sources.at(chance_.draw(2)));
        for (const auto& [name, one] : lives_) {
          if (chance_.likely(0.2)) kim_->reconcile_anyway(name);
        }
      });
      pass(chance_.up_to(3s));
    }
  }

  void happen_to(const std::string name, life& one, std::uint64_t what) {
    if (what < 48 && lives_.size() > 2) {
      happened_.note("removed " + name);
      here_.remove_runtime(name);
      returns_of_the_gone_ += static_cast<std::size_t>(one.returns);
      lives_.erase(name);
    } else if (what < 60) {
      one.suspended = !one.suspended;
      happened_.note(name + (one.suspended ? " suspended" : " goes on"));
      set(name, suspend_reconciliation_annotation, one.suspended ? "true" : nullptr);
    } else if (what < 75) {
      change_mode(name, one);
    } else if (what < 82) {
      happened_.note("marked by hand: " + name);
      boost::json::object metadata;
      const boost::json::object by_hand{{force_reconciliation_mark, "true"}};
      metadata[habits_.reads.annotation ? "annotations" : "labels"] = by_hand;
      here_.change(name, metadata);
    } else {
      kim_->reconcile_anyway(name);
    }
  }

  void change_mode(const std::string& name, life& one) {
    constexpr std::array modes{"signal", "shadow", "direct", "off"};
    const std::string next = modes.at(chance_.draw(modes.size()));
    const bool was_signalled = one.mode == "signal" || one.mode == "shadow";
    one.mode = next;
    if (!was_signalled && (next == "signal" || next == "shadow")) ++one.returns;
    happened_.note(name + " becomes " + next);
    set(name, bootstrapper_mode_annotation, next.c_str());
  }

  void set(const std::string& name, std::string_view annotation, const char* to) {
    boost::json::object annotations;
    annotations[annotation] = to == nullptr ? boost::json::value() : boost::json::value(to);
    here_.annotate(name, annotations);
  }

  void become(source which, const std::string& content) {
    contents_[which] = content;
    happened_.note(std::string(to_string(which)) + " becomes " + content);
    if (content.empty()) {
      here_.remove(which);
    } else {
      here_.put(which, content);
    }
    earlier_[which].emplace(content, here_.digest(which));
    note_sources();
  }

  std::string digest_of(const std::map<source, std::string>& contents) {
    content_digest all;
    for (const auto which : all_sources) {
      all.add(std::string_view(earlier_.at(which).at(contents.at(which))));
    }
    return all.hex();
  }

  /// Something new, something that was there before, or nothing. What comes and goes before it was
  /// recorded is no change (config_sync.hpp), and not tried.
  void change(source which) {
    if (chance_.likely(0.6)) return become(which, "c" + std::to_string(++last_content_));
    const auto& known = earlier_.at(which);
    auto at = known.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(chance_.draw(known.size())));
    const auto content = chance_.likely(0.5) ? std::string() : at->first;
    auto next = contents_;
    next[which] = content;
    const auto recorded = recorded_digest();
    const bool unseen = digest_of(contents_) != recorded && digest_of(next) == recorded;
    if (content != contents_[which] && !unseen) become(which, content);
  }

  std::string recorded_digest() {
    const auto record = here_.find_record();
    return record ? std::string(k8s::find_string(*record, {"data", "digest"})) : std::string();
  }

  void note_sources() {
    std::string all;
    for (const auto which : all_sources) all += contents_[which] + ";";
    past_.note(here_.clock.now(), std::move(all));
  }

  void add_runtime() {
    const auto name = "r" + std::to_string(++last_runtime_);
    happened_.note("added " + name);
    here_.add_runtime(name);
    lives_[name];
    ++runtimes_;
  }

  void start() {
    count_forgotten();
    happened_.note("the reactor begins");
    here_.start();
  }

  void stop_or_start() {
    if (!here_.is_running()) return start();
    ++restarts;
    here_.stop();
    happened_.note("the reactor has ended");
    // Nobody knows what was, where neither the record nor any Runtime says so.
    const bool told = std::ranges::any_of(lives_, [&](const auto& one) {
      return k8s::annotation(here_.runtime(one.first), signalled_annotation).has_value();
    });
    if (told && chance_.likely(0.1)) {
      happened_.note("the record is lost");
      if (const auto record = here_.find_record()) lost_ = number_in(*record);
      here_.remove_record();
      ++losses_;
    }
    if (chance_.likely(0.7)) start();
  }

  static std::size_t number_in(const boost::json::value& record) {
    return std::stoul(std::string(k8s::find_string(record, {"data", "number"})));
  }

  /// Without a record states are numbered on from what the Runtimes say, who may not have heard of
  /// the latest: numbers that are used twice.
  void count_forgotten() {
    if (lost_ == 0) return;
    std::size_t said = 0;
    for (const auto& [name, unused] : lives_) {
      const auto runtime = here_.runtime(name);
      const auto text = k8s::annotation(runtime, signalled_annotation);
      const auto one = text ? parse_signal(*text) : std::nullopt;
      if (one) said = std::max<std::size_t>(said, one->of.number);
    }
    forgotten_ += lost_ - std::min(lost_, said);
    lost_ = 0;
  }

  void pass(core::duration by) { here_.pass(by); }

  void judge() {
    std::size_t returns = 0;
    for (const auto& [name, one] : lives_) {
      returns += static_cast<std::size_t>(one.returns);
      const bool signalled = one.mode == "signal" || one.mode == "shadow";
      const auto runtime = here_.runtime(name);
      if (!signalled || one.suspended) continue;
      const auto at = kim_->configured().find(name);
      const auto has = at == kim_->configured().end() ? "nothing" : at->second;
      if (has != past_.last()) {
        wrong += name + " has " + has + " and should have " + past_.last() + "; it says " +
                 boost::json::serialize(runtime.at("metadata")) + "\n";
      }
      if (carries_mark(runtime)) wrong += name + " still carries a mark\n";
    }
    states = number_in(here_.record());
    marks = here_.marks();
    reconciles = kim_->reconciles();
    // One for each state, and one for each return; all who ever were count.
    // Without a record those who were never told may have missed something.
    const auto most =
        runtimes_ * (forgotten_ + states - 1 + losses_) + returns_of_the_gone_ + returns;
    if (marks > static_cast<double>(most)) {
      wrong += std::to_string(marks) + " marks, and " + std::to_string(most) + " are enough for " +
               std::to_string(states) + " states and " + std::to_string(runtimes_) + " Runtimes\n";
    }
  }

  /// Nothing changes any more: nothing is written any more, by a reactor that begins anew either.
  void rest() {
    const auto versions = [&] {
      std::string all;
      for (const auto& [name, one] : lives_) {
        all += std::string(k8s::resource_version_of(here_.runtime(name))) + ";";
      }
      return all + std::string(k8s::resource_version_of(here_.record()));
    };
    const auto before = versions();
    here_.stop();
    here_.start();
    pass(10min);
    if (versions() != before) wrong += "something was written although nothing had changed\n";
    kim_.reset();
  }

  kim_habits habits_;
  k8s::test::chance chance_;
  cluster here_;
  k8s::test::journal happened_{here_.clock, 60};
  bool faulty_ = false;
  past past_;
  std::map<source, std::string> contents_;
  /// What each source ever held, with the digest of it.
  std::map<source, std::map<std::string, std::string>> earlier_;
  std::map<std::string, life> lives_;
  std::size_t runtimes_ = 0;
  std::size_t returns_of_the_gone_ = 0;  ///< Runtimes that were removed
  std::size_t losses_ = 0;
  std::size_t lost_ = 0;  ///< number in the record that was lost, until the reactor begins anew
  std::size_t forgotten_ = 0;
  int last_content_ = 0;
  int last_runtime_ = 0;
  std::unique_ptr<kim> kim_;
};

}  // namespace rw::config_sync::test
