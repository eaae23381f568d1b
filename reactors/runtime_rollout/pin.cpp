// A pinned revision: passes roll it out in place of what the sources say.

#include "rw/reactors/runtime_rollout/runtime_rollout.hpp"

#include <algorithm>
#include <utility>

namespace rw::runtime_rollout {

namespace asio = boost::asio;
namespace json = boost::json;

/// Sees to it that passes give the pinned content to `admit`; false: they have not done so yet, and
/// the next one that does makes the next decision.
bool runtime_rollout::follow_pin(const json::value& object) {
  const auto spec = read_spec(object, options_.usual);
  auto now = decide_pin(spec.revision, read_state(object)).revision;
  if (now != pinned_) {
    pinned_ = std::move(now);
    unreadable_.clear();
    awaits_sources_ = {};
    if (pinned_.empty()) awaits_sources_ = environment_.common.clock.now() + options_.longest_unpin;
    // Those that take no part, since the sources are invalid, may take the pinned content.
    environment_.runtimes.objects().for_each(
        [this](const k8s::object& runtime) { callbacks_.requeue({key_.ns, runtime.key().name}); });
  }
  // Of pinned content nothing is said as if it were that of the sources.
  const bool expired = awaits_sources_ && environment_.common.clock.now() >= *awaits_sources_;
  if (expired || runtimes_.empty()) awaits_sources_.reset();
  if (awaits_sources_) return false;
  return pinned_.empty() || content_.digest.empty() || content_.digest == pinned_;
}

void runtime_rollout::note_unreadable(std::string_view pinned, std::string error) {
  if (pinned.empty() || pinned != pinned_ || error == unreadable_) return;
  unreadable_ = std::move(error);
  decide_soon();
}

/// Passes read it again; the one that can ends this.
asio::awaitable<k8s::reconcile_result> runtime_rollout::report_unreadable(json::value* object) {
  auto status = unreadable_status(*object, pinned_, unreadable_, environment_.common.clock.wall());
  if (!status) co_return result::done();
  const auto ended = co_await writer_.write_status(object, std::move(*status));
  co_return ended.value_or(result::done());
}

bool runtime_rollout::may_be_pinned(std::string_view content) const {
  const auto stored = environment_.rollouts.objects().get(key_);
  if (!stored) return true;  // nothing is known
  const auto known = read_state(stored.parse()).history;
  return content == content_.digest ||
         std::ranges::find(known, content, &rollout_record::content) != known.end();
}

}  // namespace rw::runtime_rollout
