#include "reactors/bootstrapper/sync.hpp"

#include "k8s/client_pool.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/rollout_turn.hpp"

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;

template <class T>
using work = asio::awaitable<k8s::result<T>>;

bool contains(const inventory& all, const inventory_entry& entry) {
  return std::ranges::any_of(all,
                             [&](const inventory_entry& each) { return each.same_object(entry); });
}

/// One runtime during one call of `sync`.
class sync_pass {
 public:
  sync_pass(std::shared_ptr<k8s::client> api, const apply_options& options, sync_request request)
      : request_(std::move(request)),
        api_(api),
        applier_(std::move(api), options, request_.to, request_.adopt, request_.may_write) {
    out_.objects = request_.state.objects;
  }

  work<sync_report> run() {
    for (const auto of : all_units) {
      const auto done = co_await sync_unit(of);
      if (!done) co_return done.error();
    }
    if (request_.write && !request_.state.exists) {
      const auto removed = co_await applier_.remove_legacy_records();
      if (!removed) co_return removed.error();
    }
    auto deployment = co_await applier_.deployment();
    if (!deployment) co_return deployment.error();
    out_.deployment = std::move(*deployment);
    auto pods = co_await find_pod_error(api_.get(), out_.deployment);
    if (!pods && k8s::is_sick(pods.error())) co_return pods.error();
    if (pods) out_.pod_error = std::move(*pods);
    out_.writes = applier_.writes();
    co_return std::move(out_);
  }

 private:
  static std::size_t index(unit of) { return static_cast<std::size_t>(of); }

  /// Fails only with what concerns the runtime as a whole.
  work<void> sync_unit(unit of) {
    auto& report = out_.units[index(of)];
    const auto& recorded = request_.state.digests[index(of)];
    report.applied = recorded;
    const auto& skipped = request_.rejected[index(of)];
    // Rather than another one, what is in place stays.
    auto revisions = request_.revisions[index(of)];
    const auto in_place = std::ranges::find(revisions, recorded,
                                            [](const revision_ptr& each) { return each->digest; });
    if (in_place != revisions.end() && in_place != revisions.begin()) {
      std::rotate(revisions.begin() + 1, in_place, in_place + 1);
    }
    for (const auto& each : revisions) {
      if (each->digest == skipped.digest) {
        if (!report.rejected) report.rejected = skipped.because;
        continue;
      }
      auto rejected = co_await apply(of, each);
      if (!rejected && concerns_runtime(rejected.error())) co_return rejected.error();
      if (!rejected) {
        if (report.changed) report.applied.clear();
        report.failed = rejected.error();
        co_return k8s::result<void>();
      }
      if (!*rejected) {
        // A revision that would be applied is not.
        if (request_.write) report.applied = each->digest;
        report.version = each->version;
        report.repaired = report.changed && each->digest == recorded;
        co_return k8s::result<void>();
      }
      if (!report.rejected) report.rejected = std::move(**rejected);
    }
    if (report.changed) report.applied.clear();
    co_return k8s::result<void>();
  }

  static bool concerns_runtime(const k8s::failure& error) {
    return k8s::is_sick(error) || error.is(k8s::errc::fenced) || error.is(k8s::errc::shut_down);
  }

  /// None: the revision is in place, or would be.
  work<std::optional<rejection>> apply(unit of, revision_ptr desired) {
    auto& report = out_.units[index(of)];
    auto plan = co_await applier_.plan(desired, out_.objects);
    if (!plan) co_return rejection_or_error(plan.error());
    if (plan->rejected) co_return std::move(plan->rejected);
    if (report.differences.empty()) report.differences = std::move(plan->differences);
    report.warnings = std::move(plan->warnings);
    report.ahead =
        of == unit::bootstrapper && request_.withheld && has_newer(*plan, *request_.withheld);
    auto entries = plan->entries(of);
    inventory obsolete;
    for (const auto& each : out_.objects) {
      if (each.of != of || contains(entries, each)) continue;
      const bool moved = std::ranges::any_of(out_.objects, [&](const inventory_entry& other) {
        return other.of != of && other.same_object(each);
      });
      if (!moved) obsolete.push_back(each);
    }
    for (const auto& each : obsolete) {
      report.differences.push_back(each.gvk.kind + " " + to_string(each.key) + " is obsolete");
    }
    if (request_.write && !report.ahead) {
      const auto done = co_await execute(of, &*plan, obsolete);
      if (!done) co_return rejection_or_error(done.error());
      std::erase_if(out_.objects, [of](const inventory_entry& each) { return each.of == of; });
      out_.objects.insert(out_.objects.end(), entries.begin(), entries.end());
    }
    for (const auto& each : plan->objects) {
      auto& types = out_.left.types;
      if (std::ranges::find(types, each.type) == types.end()) types.push_back(each.type);
      out_.left.versions[drift_key(each.type, each.key)] = k8s::resource_version_of(each.live);
    }
    co_return std::optional<rejection>();
  }

  static k8s::result<std::optional<rejection>> rejection_or_error(const k8s::failure& error) {
    if (!is_permanent(error)) return error;
    return std::optional(rejection{rejection::reason::rejected_by_runtime,
                                   "the runtime did not take it: " + error.message});
  }

  work<void> execute(unit of, unit_plan* plan, inventory obsolete) {
    auto& report = out_.units[index(of)];
    if (plan->has_writes()) {
      const auto recorded = co_await record(of, plan->entries(of));
      if (!recorded) co_return recorded.error();
    }
    const auto before = applier_.writes();
    auto done = co_await applier_.write(plan);
    if (done) done = co_await applier_.remove(std::move(obsolete));
    if (applier_.writes() > before) report.changed = true;
    co_return done;
  }

  /// What may be there from now on must be known before it is.
  work<void> record(unit of, inventory entries) {
    const auto before = out_.objects.size();
    for (auto& each : entries) {
      if (!contains(out_.objects, each)) out_.objects.push_back(std::move(each));
    }
    if (out_.objects.size() == before || !request_.record) co_return k8s::result<void>();
    const auto recorded = co_await request_.record(of, out_.objects);
    if (recorded) co_return recorded;
    co_return k8s::failure{
        .code = k8s::errc::fenced,
        .message = "the inventory can't be recorded: " + recorded.error().message};
  }

  const sync_request request_;
  const std::shared_ptr<k8s::client> api_;
  applier applier_;
  sync_report out_;
};

}  // namespace

asio::awaitable<k8s::result<sync_report>> sync(std::shared_ptr<k8s::client> api,
                                               const apply_options* options, sync_request request) {
  sync_pass pass(std::move(api), *options, std::move(request));
  auto report = co_await pass.run();
  co_return report;
}

asio::awaitable<k8s::result<std::size_t>> undeploy(std::shared_ptr<k8s::client> api,
                                                   const apply_options* options, inventory objects,
                                                   std::function<bool()> may_write) {
  applier with(std::move(api), *options, {}, false, std::move(may_write));
  const auto removed = co_await with.remove(std::move(objects));
  if (!removed) co_return removed.error();
  const auto cleaned = co_await with.remove_legacy_records();
  if (!cleaned) co_return cleaned.error();
  co_return with.writes();
}

}  // namespace rw::bootstrapper
