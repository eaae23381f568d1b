#include "rw/reactors/shared/watcher_set.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace rw {
namespace {

/// What is left of a managers' file, and of the number of Watchers.
class capacity {
 public:
  /// Returns why it does not fit; empty: it is added, in place of `before`.
  std::string add(const watcher& of, const watcher* before) {
    const auto free = before == nullptr ? 0 : size_of(*before);
    if (before == nullptr && count_ >= most_watchers) {
      return "there are " + std::to_string(count_) + " Watchers in force, and no more than " +
             std::to_string(most_watchers) + " fit on a runtime";
    }
    return put(of, free, before == nullptr ? 1 : 0);
  }
  /// The same without a limit of their number.
  std::string keep(const watcher& of) { return put(of, 0, 1); }

 private:
  static std::size_t size_of(const watcher& of) { return rendered_bytes(watch_of(of)); }

  std::string put(const watcher& of, std::size_t free, std::size_t more) {
    const auto bytes = bytes_ - free + size_of(of);
    if (bytes > managers_file_bytes || count_ + more > managers_file_watches) {
      return "with it the managers' file on a runtime would have " + std::to_string(bytes) +
             " bytes, and no more than " + std::to_string(managers_file_bytes) + " fit";
    }
    bytes_ = bytes;
    count_ += more;
    return {};
  }

  std::size_t bytes_ = rendered_bytes();
  std::size_t count_ = 0;
};

std::optional<watcher_candidate> candidate(const k8s::object& from,
                                           const k8s::object& virtual_service) {
  const auto value = from.parse();
  if (k8s::is_being_deleted(value)) return {};
  auto accepted = last_valid_watcher(value, virtual_service.parse());
  auto desired = read_watcher(value);
  if (!desired && !accepted) return {};
  watcher_candidate out{.desired = desired ? std::move(*desired) : *accepted};
  out.accepted = std::move(accepted);
  return out;
}

using sources = std::pair<k8s::object, k8s::object>;

bool is_same(const sources& a, const sources& b) {
  const auto same = [](const k8s::object& object, const k8s::object& other) {
    return object && other ? k8s::same_state(object, other) : !object && !other;
  };
  return same(a.first, b.first) && same(a.second, b.second);
}

}  // namespace

watcher_choice choose_watchers(std::vector<watcher_candidate> among) {
  std::ranges::sort(among, {}, [](const watcher_candidate& candidate) {
    return std::tie(candidate.desired.created, candidate.desired.uid);
  });
  watcher_choice out;
  capacity left;
  for (auto& candidate : among) {
    if (candidate.accepted && !left.keep(*candidate.accepted).empty()) candidate.accepted.reset();
  }
  for (auto& candidate : among) {
    auto error = left.add(candidate.desired, candidate.accepted ? &*candidate.accepted : nullptr);
    if (error.empty()) {
      out.in_force.push_back(std::move(candidate.desired));
      continue;
    }
    out.refused.emplace(candidate.desired.key, std::move(error));
    if (candidate.accepted) out.in_force.push_back(std::move(*candidate.accepted));
  }
  std::ranges::sort(out.in_force, {}, [](const watcher& watcher) {
    return std::tie(watcher.key.ns, watcher.key.name);
  });
  return out;
}

const watcher_choice& watcher_set::current() {
  std::vector<std::pair<k8s::object, k8s::object>> now;
  now.reserve(made_of_.size());
  watchers_.objects().for_each([&](const k8s::object& object) {
    now.emplace_back(object, virtual_services_.objects().get(object.key()));
  });
  if (std::ranges::equal(now, made_of_, is_same)) return choice_;
  std::vector<watcher_candidate> among;
  for (const auto& [watcher, virtual_service] : now) {
    if (auto found = candidate(watcher, virtual_service)) among.push_back(std::move(*found));
  }
  choice_ = choose_watchers(std::move(among));
  made_of_ = std::move(now);
  return choice_;
}

}  // namespace rw
