#include "tests/simulation/writer.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace rw::simulation {
namespace {

namespace asio = boost::asio;

constexpr unsigned values = 3;  ///< few, so that changes go there and back
constexpr int tries_after_conflict = 3;

http::client_options webhook_client(std::uint16_t port) {
  http::client_options options;
  options.name = "webhook-calls";
  options.host = "127.0.0.1";
  options.port = port;
  options.limits.connections = 25;
  return options;
}

}  // namespace

writer::writer(environment& in, store& objects, std::vector<managed_watch> watches)
    : in_(in),
      store_(objects),
      watches_(std::move(watches)),
      first_(in.executor(), webhook_client(webhook_port), {*plain_, in.watchdog, in.log, metrics_}),
      second_(in.executor(), webhook_client(second_port), {*plain_, in.watchdog, in.log, metrics_}),
      tasks_(in.executor()) {}

writer::~writer() {
  in_.finish(tasks_);
  core::task_group last(in_.executor());
  last.spawn(first_.close());
  last.spawn(second_.close());
  in_.step(in_.now() + seconds(1));
  in_.finish(last);
}

void writer::write() {
  static constexpr std::array operations = {
      operation::create, operation::create, operation::spec,         operation::spec,
      operation::spec,   operation::status, operation::note,         operation::label,
      operation::remove, operation::remove, operation::begin_delete, operation::create};
  auto& chance = in_.chance;
  const auto kind = chance.draw(store_.kinds().size());
  attempt write{kind, name_of(kind, chance.draw(now.names)),
                operations.at(chance.draw(operations.size())),
                static_cast<unsigned>(chance.draw(values))};
  tasks_.spawn(perform(std::move(write)));
}

/// "o3" at first.
std::string writer::name_of(std::size_t kind, std::size_t number) {
  const auto turn = turns_[kind];
  return (turn == 0 ? "o" : "t" + std::to_string(turn) + "-o") + std::to_string(number);
}

void writer::turn_over(std::size_t kind) {
  if (!store_.defines(kind)) return;
  in_.note("turnover of " + store_.kinds()[kind].kind);
  const auto old = store_.all(kind);
  for (const auto& [name, object] : old) store_.put(kind, name, {});
  ++turns_[kind];
  for (std::size_t i = 0; i < now.names; ++i) {
    model_object made;
    made.uid = "u" + std::to_string(++uids_);
    made.labelled = true;
    store_.put(kind, name_of(kind, i), made);
  }
}

void writer::delete_surplus(std::size_t most) {
  for (std::size_t kind = 0; kind < store_.kinds().size(); ++kind) {
    while (store_.all(kind).size() > most) {
      const auto which = in_.chance.draw(store_.all(kind).size());
      const auto at = std::next(store_.all(kind).begin(), static_cast<std::ptrdiff_t>(which));
      store_.put(kind, std::string(at->first), {});
    }
  }
}

bool writer::makes_sense(const attempt& write, const model_object* before) const {
  if (!store_.defines(write.kind)) return false;
  if (write.what == operation::label && !now.relabels) return false;
  return (write.what == operation::create) == (before == nullptr);
}

/// As it is after the write; nothing: it is removed.
std::optional<model_object> writer::result_of(const attempt& write,
                                              const model_object* before) const {
  if (write.what == operation::remove) return std::nullopt;
  if (before == nullptr) {
    model_object made;
    made.uid = "u" + std::to_string(uids_);
    made.labelled = write.value != 0 || !now.relabels;
    made.spec = write.value;
    return made;
  }
  auto next = *before;
  if (write.what == operation::spec) next.spec = write.value;
  if (write.what == operation::status) next.status = write.value;
  if (write.what == operation::note) next.note = write.value;
  if (write.what == operation::label) next.labelled = !next.labelled;
  if (write.what == operation::begin_delete) next.deleting = true;
  const bool counts = next.spec != before->spec || next.deleting != before->deleting ||
                      (!store_.kinds()[write.kind].has_status && next.status != before->status);
  if (counts) ++next.generation;
  return next;
}

/// Rules and object selector of each entry, as the installer renders them (contracts: a status
/// Watcher names the subresource).
std::vector<std::string> writer::managers_for(const attempt& write, const model_object* before,
                                              const std::optional<model_object>& after) const {
  std::vector<std::string> managers;
  for (const auto& watch : watches_) {
    const auto& kind = store_.kinds()[write.kind];
    if (watch.watched.plural != kind.plural || watch.watched.group != kind.group) continue;
    if ((watch.field == "status") != (write.what == operation::status)) continue;
    const bool selected = watch.labels.empty() || (before != nullptr && before->labelled) ||
                          (after && after->labelled);
    if (selected) managers.push_back(watch.manager);
  }
  return managers;
}

std::string writer::review_of(const attempt& write, const model_object* before,
                              const std::optional<model_object>& after, bool dry_run) const {
  const auto& kind = store_.kinds()[write.kind];
  // The first phase of a deletion with finalizers is a DELETE, too.
  const bool deletes = write.what == operation::remove || write.what == operation::begin_delete;
  const auto text = [&](const model_object* object) {
    return object == nullptr ? "null" : store_.text(write.kind, write.name, *object);
  };
  return R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"r1",)"
         R"("kind":{"group":")" +
         kind.group + R"(","version":")" + kind.version + R"(","kind":")" + kind.kind +
         R"("},"name":")" + write.name + R"(","namespace":")" + store::space +
         R"(","operation":")" +
         (deletes             ? "DELETE"
          : before == nullptr ? "CREATE"
                              : "UPDATE") +
         R"(",)" + (write.what == operation::status ? R"("subResource":"status",)" : "") +
         R"("object":)" + text(deletes || !after ? nullptr : &*after) + R"(,"oldObject":)" +
         text(before) + R"(,"dryRun":)" + (dry_run ? "true" : "false") + "}}";
}

asio::awaitable<void> writer::perform(attempt write) {
  auto& chance = in_.chance;
  ++uids_;
  const bool dry_run = chance.likely(0.05);
  for (int tries = 0; tries < tries_after_conflict; ++tries) {
    const auto* found = store_.find(write.kind, write.name);
    if (!makes_sense(write, found)) co_return;
    const auto before = found != nullptr ? std::optional(*found) : std::nullopt;
    const auto* was = before ? &*before : nullptr;
    const auto next = result_of(write, was);
    const auto managers = managers_for(write, was, next);
    const auto review = review_of(write, was, next, dry_run);
    for (const auto& manager : managers) {
      if (now.calls) co_await call(manager, review);
    }
    if (now.latency > duration::zero()) co_await in_.sleep(chance.up_to(now.latency));
    if (dry_run || chance.likely(now.rejected)) co_return;
    const auto* current = store_.find(write.kind, write.name);
    if (!store_.defines(write.kind)) co_return;
    const bool conflict = (current == nullptr) != (found == nullptr) ||
                          (current != nullptr && current->version != before->version);
    if (conflict) continue;
    const bool changes = !before || !next || before->spec != next->spec ||
                         before->status != next->status || before->note != next->note ||
                         before->labelled != next->labelled || before->deleting != next->deleting;
    if (changes) store_.put(write.kind, write.name, next);
    co_return;
  }
}

/// Whatever comes of it: `failurePolicy: Ignore`.
asio::awaitable<void> writer::call(std::string manager, std::string review) {
  http::request request;
  http::response response;
  request.method = "POST";
  request.target = "/validate/" + manager;
  request.headers.add("content-type", "application/json");
  request.body = std::move(review);
  http::client_slot slot;
  const bool to_second = now.second && (!now.first || in_.chance.likely(0.5));
  const auto error = co_await (to_second ? second_ : first_).acquire(slot, now.timeout);
  if (error) co_return;
  http::exchange_options options;
  options.limit = now.timeout;
  co_await slot.exchange(request, response, options);
}

}  // namespace rw::simulation
