// What a runtime is to have: the set that is wanted, or the one that it has.

#include "reactors/bootstrapper/sync.hpp"

#include "k8s/types.hpp"
#include "reactors/bootstrapper/manifest_set.hpp"
#include "reactors/bootstrapper/visit.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using phase = sync_record::phase;

const k8s::resource_type deployments{{"apps", "v1", "Deployment"}, "deployments", true};

std::string version_in(const std::vector<set_item>& items, const std::string& ns) {
  const k8s::object_key key{ns, std::string(deployment_name)};
  const auto found = std::ranges::find_if(items, [&](const set_item& one) {
    return k8s::find_string(one.object, {"kind"}) == "Deployment" && k8s::key_of(one.object) == key;
  });
  return found == items.end() ? std::string() : version_of(found->object);
}

}  // namespace

/// The set that was begun, or else the one in place. None: there is none, or it is damaged.
visit::work<std::optional<known_set>> visit::set_in_place() {
  if (record_.now == phase::applying && !record_.target.empty()) {
    auto begun = co_await store_.load(record_.target, record_.target_parts);
    if (!begun) co_return begun.error();
    if (*begun) co_return begun;
  }
  if (record_.good.empty()) co_return std::optional<known_set>();
  auto good = co_await store_.load(record_.good, record_.good_parts);
  co_return good;
}

/// What the control plane wants, completed by what the runtime keeps, and checked as a whole. None:
/// it is not valid, and the report says why.
visit::work<std::optional<known_set>> visit::wanted_set() {
  if (!what_.wanted) {
    out_.refused = what_.invalid;
    co_return std::optional<known_set>();
  }
  auto objects = what_.wanted->objects;
  problems wrong;
  if (!what_.wanted->kept.empty()) {
    auto there = co_await set_in_place();
    if (!there) co_return there.error();
    for (const auto from : what_.wanted->kept) {
      const auto before = objects.size();
      for (const auto& one : *there ? (*there)->items : std::vector<set_item>()) {
        if (one.from == from) objects.push_back({one.from, one.object});
      }
      if (objects.size() > before) continue;
      wrong.push_back({std::string(to_string(from)),
                       "its source is not in the control plane, and the runtime has none to keep"});
    }
  }
  check_whole(objects, what_.to, what_.wanted->configured_by, wrong);
  if (!wrong.empty()) {
    out_.refused = describe(wrong);
    co_return std::optional<known_set>();
  }
  known_set out{.digest = digest_of(objects)};
  for (auto& one : objects) out.items.push_back({one.from, std::move(one.object), {}});
  out.version = version_in(out.items, what_.to.ns);
  out_.wanted = out.digest;
  co_return std::optional(std::move(out));
}

bool visit::is_refused(const known_set& set) const {
  return record_.refused && record_.refused->digest == set.digest &&
         what_.now - record_.refused->at < how_.retry_refused;
}

visit::work<void> visit::look_at_deployment() {
  auto got = co_await writer_.api().get(deployments, {what_.to.ns, std::string(deployment_name)});
  if (!got && !got.error().is(k8s::errc::not_found)) co_return got.error();
  if (got) out_.deployment = std::move(*got);
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<sync_report>> visit::run() {
  auto known = what_.record;
  if (!known) {
    auto read = co_await store_.read();
    if (!read) co_return read.error();
    known = std::move(*read);
  }
  has_record_ = known->has_value();
  if (has_record_) record_ = std::move(**known);
  if (record_.foreign) {
    out_.distrusted = true;
    record_ = {};
    has_record_ = false;
  }
  out_.half_way = record_.now != phase::settled;
  if (record_.leftovers && !out_.half_way && what_.write) co_await clean_up();
  if (record_.now == phase::rolling_back && what_.write) {
    const auto back = co_await go_back({}, {});
    if (!back) co_return back.error();
  }
  auto wanted = co_await wanted_set();
  if (!wanted) co_return wanted.error();
  bool made = false;
  std::string version;
  if (*wanted && is_refused(**wanted)) {
    out_.refused = record_.refused->why;
  } else if (*wanted) {
    version = (*wanted)->version;
    const auto brought = co_await make(std::move(**wanted));
    if (!brought) co_return brought.error();
    made = *brought;
  }
  if (!made && !out_.rolled_back) {
    auto there = co_await set_in_place();
    if (!there) co_return there.error();
    if (*there) {
      version = (*there)->version;
      auto why = std::move(out_.refused);
      const auto kept = co_await make(std::move(**there));
      if (!kept) co_return kept.error();
      if (*kept) out_.refused = std::move(why);
      // What was begun, and can't be ended.
      const bool begun = record_.now == phase::applying && !record_.target.empty() &&
                         record_.target != record_.good;
      if (!*kept && begun && what_.write) {
        const auto back = co_await go_back(record_.target, out_.refused);
        if (!back) co_return back.error();
      }
    }
  }
  if (!no_way_back_.empty() && record_.now != phase::settled) {
    out_.refused += (out_.refused.empty() ? "" : "; ") + no_way_back_;
  }
  const auto looked = co_await look_at_deployment();
  if (!looked) co_return looked.error();
  out_.digest = record_.now == phase::settled ? record_.good : std::string();
  if (made || !out_.digest.empty()) out_.version = std::move(version);
  out_.writes = writer_.writes();
  co_return std::move(out_);
}

asio::awaitable<k8s::result<std::optional<sync_record>>> read_record(
    std::shared_ptr<k8s::client> api, const sync_method* how, std::string subject) {
  writer with(std::move(api), how->field_manager, {});
  runtime_store store(with, how->record_namespace, how->record_key, std::move(subject));
  auto record = co_await store.read();
  co_return record;
}

asio::awaitable<k8s::result<sync_report>> sync(std::shared_ptr<k8s::client> api,
                                               const sync_method* how, sync_request what) {
  visit one(std::move(api), *how, std::move(what));
  auto report = co_await one.run();
  co_return report;
}

asio::awaitable<k8s::result<std::size_t>> undeploy(std::shared_ptr<k8s::client> api,
                                                   const sync_method* how, std::string subject,
                                                   std::function<bool()> may_write,
                                                   std::chrono::system_clock::time_point now) {
  writer with(std::move(api), how->field_manager, std::move(may_write));
  runtime_store store(with, how->record_namespace, how->record_key, std::move(subject));
  auto read = co_await store.read();
  if (!read) co_return read.error();
  if (!*read) co_return with.writes();
  auto& record = **read;
  if (record.foreign) {
    co_return k8s::failure{.code = k8s::errc::invalid,
                           .message =
                               "the record on the runtime of what was applied there is not "
                               "as it was written, so nobody knows what may be removed"};
  }
  if (record.now != phase::removing) {
    record.now = phase::removing;
    record.good.clear();  // there is no way back from here
    record.good_parts = 0;
    record.since = now;
    const auto told = co_await store.write(record);
    if (!told) co_return told.error();
  }
  known_set none;
  const auto plan = make_plan(none, record, {}, {});
  auto step = co_await remove_ours(&with, plan.prune);
  if (step) step = co_await store.drop_others({});
  if (step) step = co_await store.forget();
  if (!step) co_return step.error();
  co_return with.writes();
}

}  // namespace rw::bootstrapper
