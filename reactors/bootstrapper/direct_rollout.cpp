// The part of a pass that the roll-out decides.

#include "rw/reactors/bootstrapper/direct_sync.hpp"

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;

/// Of a unit that has no objects.
const std::string& nothing_digest() {
  static const auto digest = render(unit::credentials, {}, {}).digest;
  return digest;
}

}  // namespace

bool direct_sync::is_used(std::string_view source) const {
  const auto kept = usual_content::kept_digest(source);
  if (kept.empty()) return kcp_.is_used(source);
  return gate_ == nullptr || gate_->may_be_pinned(kept);
}

/// Lets the roll-out decide which content the runtime gets; how the pass ends if that fails.
asio::awaitable<resource_writer::ended> direct_sync::ask_gate(pass* in, std::string digest) {
  if (gate_ == nullptr) co_return std::nullopt;
  if (!usual_.used_by(in->view)) {
    if (!in->is_preview) gate_->leave(in->to.key);
    co_return std::nullopt;
  }
  const auto loaded = co_await usual_.load(environment_.clock.wall());
  if (!loaded) co_return result::error(loaded.error());
  const auto& content = usual_.current();
  // What is pinned may have changed meanwhile, too.
  const bool pinned = !in->not_pinned.empty() || usual_.pinned_digest() == gate_->pinned();
  if (content.digest != digest || !pinned) co_return result::requeue_after(catch_up);
  auto& of = in->input.state.at(unit::bootstrapper);
  const auto completed =
      revisions_.render_stored(in->view, usual_.completed(), environment_.clock.wall());
  const bool shares = usual_.shares_credentials(in->view);
  const bool completed_removal =
      completed && shares && usual_.completed_removal() && !completed->uses_pull_secret;
  auto& credentials = in->input.state.at(unit::credentials);
  const content_revisions desired{
      usual_content::revision_of(of.desired, shares && credentials.removal),
      usual_content::revision_of(completed ? completed->digest : std::string(), completed_removal)};
  if (in->is_preview ? gate_->still_admits(in->to.key, content.digest)
                     : gate_->admit(in->to.key, content, desired, rollout_facts(*in))) {
    in->admitted = content.digest;
    co_return std::nullopt;
  }
  hold(of, completed);
  if (shares && credentials.removal) {
    keep_credentials(credentials);
    credentials.removal = false;
  }
  co_return std::nullopt;
}

/// Other content may have come since the pass began. What is rolled out in steps is the unit
/// `bootstrapper`, and the removal of the usual pull Secret.
bool direct_sync::has_lost_turn(const pass& in, unit of, const revision_ptr& to) {
  if (in.admitted.empty()) return false;
  const auto& all = in.input.state.at(of).revisions;
  if (all.empty() || all.front() != to) return false;
  const bool removes = usual_.shares_credentials(in.view) && to->digest == nothing_digest();
  if (of == unit::credentials && !removes) return false;
  return in.admitted != usual_.current().digest || !gate_->still_admits(in.to.key, in.admitted);
}

/// For the roll-out a runtime without the usual pull Secret has another revision.
content_facts direct_sync::rollout_facts(const pass& in) const {
  auto out = facts_of(in.resource);
  const bool removed = usual_.shares_credentials(in.view) &&
                       read_state(in.resource).at(unit::credentials).in_place == nothing_digest();
  if (out.in_place) out.in_place = usual_content::revision_of(*out.in_place, removed);
  return out;
}

/// The pull Secret stays until the configuration in place does not need it, either.
void direct_sync::settle_removal(pass* in) {
  auto& credentials = in->input.state.at(unit::credentials);
  const auto& of = in->input.state.at(unit::bootstrapper);
  if (!credentials.removal || of.in_place.empty()) return;
  const auto found = std::ranges::find(of.revisions, of.in_place,
                                       [](const revision_ptr& each) { return each->digest; });
  if (found != of.revisions.end() && !(*found)->uses_pull_secret) return;
  keep_credentials(credentials);
  in->removal_waits = of.in_place != of.desired;
}

}  // namespace rw::bootstrapper
