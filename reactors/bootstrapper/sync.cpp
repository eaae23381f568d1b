#include "reactors/bootstrapper/sync.hpp"

#include "k8s/client/client_pool.hpp"
#include "k8s/objects/types.hpp"
#include "reactors/bootstrapper/rollout_turn.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;

template <class T>
using work = asio::awaitable<k8s::result<T>>;

const inventory_entry* find(const inventory& all, const inventory_entry& entry) {
  const auto found = std::ranges::find_if(
      all, [&](const inventory_entry& each) { return each.same_object(entry); });
  return found == all.end() ? nullptr : &*found;
}

bool concerns_runtime(const k8s::failure& error) {
  return k8s::is_sick(error) || error.is(k8s::errc::fenced) || error.is(k8s::errc::shut_down);
}

k8s::result<std::optional<rejection>> rejection_or_error(const k8s::failure& error) {
  if (!is_permanent(error)) return error;
  return std::optional(rejection{rejection::reason::rejected_by_runtime,
                                 "the runtime did not take it: " + error.message});
}

/// One runtime during one call of `sync`.
class sync_pass {
 public:
  sync_pass(std::shared_ptr<k8s::client> api, const apply_options& options, sync_request request,
            sync_state& out)
      : request_(std::move(request)),
        api_(api),
        applier_(std::move(api), options, request_.to, request_.adopt, request_.may_write),
        out_(out) {}

  work<void> run() {
    auto done = co_await sync_unit(unit::credentials);
    if (done) done = co_await sync_unit(unit::bootstrapper);
    out_.writes = applier_.writes();
    if (!done) co_return done.error();
    auto deployment = co_await applier_.deployment();
    if (!deployment) co_return deployment.error();
    out_.deployment = std::move(*deployment);
    const auto pods = co_await inspect_pods(api_.get(), out_.deployment);
    if (!pods && concerns_runtime(pods.error())) co_return pods.error();
    if (pods) out_.pod_error = pods->error();
    co_return done;
  }

 private:
  /// The unit's revisions, the desired one first, then the one that is in place: rather than
  /// another one, it stays.
  static std::vector<revision_ptr> revisions(const unit_state& of) {
    auto out = of.revisions;
    const auto in_place =
        std::ranges::find(out, of.in_place, [](const revision_ptr& each) { return each->digest; });
    if (in_place != out.end() && in_place != out.begin()) {
      std::rotate(out.begin() + 1, in_place, in_place + 1);
    }
    return out;
  }

  /// Fails only with what concerns the runtime as a whole.
  work<void> sync_unit(unit of) {
    auto& state = out_.at(of);
    for (const auto& each : revisions(state)) {
      if (each->digest == state.skipped.digest) {
        if (!state.rejected) state.rejected = state.skipped.because;
        continue;
      }
      auto rejected = co_await apply(of, each);
      if (!rejected) co_return note_failure(of, rejected.error());
      if (!*rejected) {
        // A revision that would be applied is not.
        if (request_.write) state.applied = each->digest;
        state.version = each->version;
        state.repaired = state.changed && each->digest == state.in_place;
        co_return k8s::result<void>();
      }
      if (!state.rejected) state.rejected = std::move(**rejected);
    }
    if (!request_.write || !state.rejected || !state.applied.empty()) {
      co_return k8s::result<void>();
    }
    const auto removed = co_await remove_created(of);
    if (!removed) co_return note_failure(of, removed.error());
    co_return removed;
  }

  k8s::result<void> note_failure(unit of, const k8s::failure& error) {
    out_.at(of).failed = error;
    return concerns_runtime(error) ? k8s::result<void>(error) : k8s::result<void>();
  }

  /// None: the revision is in place, or would be.
  work<std::optional<rejection>> apply(unit of, revision_ptr desired) {
    auto& state = out_.at(of);
    auto plan = co_await applier_.plan(desired, out_.objects);
    if (!plan) co_return rejection_or_error(plan.error());
    if (plan->rejected) co_return std::move(plan->rejected);
    if (state.differences.empty()) state.differences = std::move(plan->differences);
    state.warnings.insert(state.warnings.end(), plan->warnings.begin(), plan->warnings.end());
    auto entries = plan->entries(of);
    for (auto& each : entries) {
      if (const auto* const known = find(out_.objects, each)) each.created |= known->created;
    }
    inventory obsolete;
    for (const auto& each : out_.objects) {
      if (each.of != of || find(entries, each) != nullptr) continue;
      const bool moved = std::ranges::any_of(out_.objects, [&](const inventory_entry& other) {
        return other.of != of && other.same_object(each);
      });
      if (!moved) obsolete.push_back(each);
    }
    for (const auto& each : obsolete) {
      state.differences.push_back(each.gvk.kind + " " + to_string(each.key) + " is obsolete");
    }
    state.ahead = state.withheld && has_newer(*plan, *state.withheld);
    if (request_.write && !state.ahead) {
      const auto done = co_await execute(of, &*plan, entries, obsolete);
      if (!done) co_return rejection_or_error(done.error());
      for (auto& each : entries) each.created = false;
      std::erase_if(out_.objects, [of](const inventory_entry& each) { return each.of == of; });
      out_.objects.insert(out_.objects.end(), entries.begin(), entries.end());
    }
    for (const auto& each : plan->objects) {
      out_.left.add(each.type, each.key, k8s::resource_version_of(each.live),
                    {.labels = std::string(synced_by_label) + "=" + std::string(synced_by)});
    }
    co_return std::optional<rejection>();
  }

  work<void> execute(unit of, unit_plan* plan, inventory entries, inventory obsolete) {
    if (!plan->has_writes() && obsolete.empty()) co_return k8s::result<void>();
    const auto recorded = co_await record(of, std::move(entries));
    if (!recorded) co_return recorded.error();
    out_.at(of).applied.clear();
    out_.at(of).changed = true;
    auto done = co_await applier_.write(plan);
    if (done) done = co_await applier_.remove(std::move(obsolete));
    co_return done;
  }

  /// What may be there from now on must be known before it is.
  work<void> record(unit of, inventory entries) {
    const auto before = out_.objects.size();
    for (auto& each : entries) {
      if (find(out_.objects, each) == nullptr) out_.objects.push_back(std::move(each));
    }
    if (out_.objects.size() == before || !request_.record) co_return k8s::result<void>();
    const auto recorded = co_await request_.record(of, out_.objects);
    if (recorded) co_return recorded;
    co_return k8s::failure{
        .code = k8s::errc::fenced,
        .message = "the inventory can't be recorded: " + recorded.error().message};
  }

  /// No revision is in place as a whole, nor can be. What was part of one stays, and what was taken
  /// over.
  work<void> remove_created(unit of) {
    const auto is_created = [of](const inventory_entry& each) {
      return each.of == of && each.created;
    };
    inventory created;
    std::ranges::copy_if(out_.objects, std::back_inserter(created), is_created);
    const auto removed = co_await applier_.remove(created);
    if (removed) std::erase_if(out_.objects, is_created);
    co_return removed;
  }

  const sync_request request_;
  const std::shared_ptr<k8s::client> api_;
  applier applier_;
  sync_state& out_;
};

}  // namespace

asio::awaitable<k8s::result<void>> sync(std::shared_ptr<k8s::client> api,
                                        const apply_options* options, sync_request request,
                                        sync_state* state) {
  sync_pass pass(std::move(api), *options, std::move(request), *state);
  auto done = co_await pass.run();
  co_return done;
}

asio::awaitable<k8s::result<std::size_t>> undeploy(std::shared_ptr<k8s::client> api,
                                                   const apply_options* options, inventory objects,
                                                   std::function<bool()> may_write) {
  applier with(std::move(api), *options, {}, false, std::move(may_write));
  const auto removed = co_await with.remove(std::move(objects));
  if (!removed) co_return removed.error();
  co_return with.writes();
}

}  // namespace rw::bootstrapper
