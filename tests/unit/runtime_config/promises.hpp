#pragma once

#include "tests/unit/runtime_config/land.hpp"
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace rw::runtime_config_test {

/// What is promised of runtimes in mode direct, checked on the runtimes themselves:
///
///   - Each unit is exactly one revision, that is contents that the sources had at one time, and
///     the status names the one that it is.
///   - No more runtimes have a version of the manifests with pods that are not ready than the
///     roll-out may expose; those that others wrote to, or disturbed, are no part of the count.
///   - No pull Secret is followed by an older one.
///   - A roll-out that says Ready has reached all; a missing source, and one that can't be stored,
///     are said.
class promises {
 public:
  explicit promises(land& of) : land_(of) {}

  /// The sources are as the land has them now, or were changed.
  void note_sources();
  /// A request writes to this path of the runtime.
  void note_write(const std::string& runtime, const std::string& path);
  /// Another one writes to the runtime, or it is disturbed in another way.
  void excuse(const std::string& runtime);
  /// KIM begins, or ends, to write to the runtime: that is ahead until it has the sources as they
  /// are, whatever they become meanwhile, and a manager has taken that over.
  void note_kim(const std::string& runtime, bool begins);
  /// Others take the pull Secret from the runtime, or what it holds.
  void note_lost_secret(const std::string& runtime) { bereft_.insert(runtime); }
  /// A person goes on after failures.
  void note_resume() { ++resumes_; }
  void forget(const std::string& runtime);

  /// Looks at the runtimes that were written to since the last time.
  void observe();
  /// Looks at a runtime that nobody has disturbed for long. `credentials`: it takes the newest.
  /// `lost`: stored contents were, and what is not stored can't be brought back, or the runtime has
  /// refused what repairs it; then it must say so.
  void check(const std::string& runtime, bool credentials, bool lost);
  /// Looks at what the roll-out says, of these runtimes. `may_go_on`: nothing keeps it from its
  /// end.
  void check_rollout(const std::set<std::string>& well, bool may_go_on);
  /// True while the roll-out goes on, such as in the bake of its last step.
  bool rolls_out() const;
  void fail(const std::string& text);

  std::vector<int versions::*> missing;  ///< sources
  std::string broken;                    ///< empty: all of them are kept
  std::size_t checks = 0;

 private:
  void count_exposed();
  bool is_taken_over(const std::string& runtime);
  std::string rollout_phase() const;
  bool has_rolled_out() const;
  void forget_unknown_secret(const std::string& runtime, const versions& has);
  void check_without_secret(const std::string& runtime);
  versions& seen_of(const std::string& runtime) {
    return seen_.try_emplace(runtime, versions{0, 0, 0, 0}).first->second;
  }
  std::size_t count_of(const std::set<std::string>& runtimes) const;
  void check_digest(const std::string& runtime, const std::string& unit, const std::string& digest,
                    const versions& of);

  land& land_;
  std::set<versions> combinations_;  ///< without pull Secrets
  std::set<std::string> written_;
  std::map<std::string, versions> seen_;
  std::map<std::string, bool> kim_;  ///< writes there; false: has since the last look
  std::set<std::string> bereft_;     ///< of a pull Secret, since they were looked at last
  int manifests_ = 0;                ///< version of the manifests in KCP; since it came:
  /// Runtimes that got it, by the content that they got it with.
  std::map<versions, std::set<std::string>> exposed_;
  std::set<std::string> excused_;
  std::set<std::string> ahead_;
  std::size_t resumes_ = 0;
  std::map<std::string, versions> contents_by_digest_;
  std::map<versions, std::string> digests_;
};

}  // namespace rw::runtime_config_test
