#include "rw/k8s/devserver/garbage_collector.hpp"

#include "rw/k8s/devserver/definitions.hpp"
#include "rw/k8s/devserver/deployment_status.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/object_meta.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/array.hpp>

#include <algorithm>

namespace rw::k8s::devserver {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr auto pause = std::chrono::seconds(1);
constexpr std::string_view namespaces_key = "namespaces";
constexpr std::string_view deployments_key = "deployments.apps";
constexpr std::string_view foreground = "foregroundDeletion";
constexpr std::string_view orphan = "orphan";

/// A run over a cluster's tasks. If it is cancelled, the destructor returns unfinished tasks to
/// the list.
struct shift {
  explicit shift(gc_task_list& of) : gc_tasks(of) {}
  ~shift() {
    gc_tasks.open.merge(again);
    gc_tasks.running = false;
  }
  shift(const shift&) = delete;
  shift& operator=(const shift&) = delete;

  gc_task_list& gc_tasks;
  std::set<gc_task> again;  ///< begun, or to be retried
};

/// Returns the resource whose objects are stored under that key, in the version they are stored in.
served_resource view_of(const cluster& in, std::string_view storage_key) {
  const auto dot = std::min(storage_key.find('.'), storage_key.size());
  const auto group = storage_key.substr(std::min(dot + 1, storage_key.size()));
  auto of = in.kinds.find(group, storage_key.substr(0, dot));
  if (!of) return {};
  const auto* version = &of->versions[of->stored];
  return {std::move(of), version};
}

object_key key_of(std::string_view path) {
  const auto slash = path.find('/');
  if (slash == std::string_view::npos) return {"", std::string(path)};
  return {std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

call call_for(const std::shared_ptr<cluster>& in, served_resource view, object_key key,
              std::string_view user) {
  call to{in, std::move(view), std::move(key)};
  to.by.user = "system:serviceaccount:kube-system:" + std::string(user);
  to.by.groups = {"system:serviceaccounts", "system:serviceaccounts:kube-system",
                  "system:authenticated"};
  return to;
}

/// In a real cluster the controller of definitions works on the storage itself, and webhooks do not
/// receive its deletions; those of all other controllers are ordinary requests.
bool is_definition_controller(const call& call) {
  return call.by.user.ends_with(":crd-controller");
}

record_ptr find_object(const cluster& in, const object_place& place) {
  const auto found = in.objects.find(place.storage_key);
  return found ? found->find(place.path) : nullptr;
}

/// Returns the place of an owner, whether or not it exists; nothing if its kind is not served.
object_place place_of(const cluster& in, const json::value& reference, std::string_view ns) {
  group_version_kind gvk;
  parse_api_version(std::string(find_string(reference, {"apiVersion"})), gvk);
  const auto view = in.kinds.find_kind(gvk.group, "", find_string(reference, {"kind"}));
  if (!view) return {};
  return {view.of->storage_key,
          storage_path(view.of->namespaced ? ns : "", find_string(reference, {"name"}))};
}

void drop_finalizer(json::value& object, std::string_view name) {
  auto names = finalizers_of(object);
  std::erase(names, name);
  set_finalizers(object, names);
}

bool has_finalizer(const json::value& object, std::string_view name) {
  const auto names = finalizers_of(object);
  return std::find(names.begin(), names.end(), name) != names.end();
}

const json::array* references_of(const json::value& object) {
  const auto* references = find(object, {"metadata", "ownerReferences"});
  return references == nullptr ? nullptr : references->if_array();
}

void drop_references(json::value& object, const std::vector<std::string>& uids) {
  auto* references = find(object, {"metadata", "ownerReferences"});
  if (references == nullptr || !references->is_array()) return;
  auto& all = references->get_array();
  for (auto at = all.begin(); at != all.end();) {
    const auto uid = find_string(*at, {"uid"});
    at = std::find(uids.begin(), uids.end(), uid) == uids.end() ? at + 1 : all.erase(at);
  }
}

/// Fills in new defaults: objects are read with the defaults of their current definition.
void read_with_defaults(cluster& in, const resource& of) {
  const auto& stored = of.versions[of.stored];
  const auto objects = in.objects.find(of.storage_key);
  if (!objects || !stored.type) return;
  for (const auto& stored_record : objects->all({})) {
    const auto before = stored_record->parse();
    auto object = before;
    stored.type->drop_nulls(object);
    stored.type->fill_defaults(object);
    if (object == before) continue;
    storage::restate(*objects,
                     std::make_shared<const record>(stored_record->key(), stored_record->version(),
                                                    std::move(object)));
  }
}

/// As its controller sees it.
bool is_observed(const json::value& deployment) {
  return find_number(deployment, {"status", "observedGeneration"}) == generation_of(deployment);
}

bool same_schema(const json::value& a, const json::value& b) {
  const auto* was = find(a, {"spec", "versions"});
  const auto* is = find(b, {"spec", "versions"});
  return was != nullptr && is != nullptr && *was == *is;
}

/// Adds, changes or removes the kind of a definition at once.
void follow_definition(cluster& in, const change& change) {
  const auto definition = change.after->parse();
  if (change.deleted) {
    in.kinds.remove(find_string(definition, {"spec", "group"}),
                    find_string(definition, {"spec", "names", "plural"}));
    in.objects.drop(change.after->path());
  } else if (auto made = make_resource(definition)) {
    const bool changed = change.before && !same_schema(change.before->parse(), definition);
    if (changed) read_with_defaults(in, *made);
    in.kinds.set(std::move(made));
  }
}

}  // namespace

garbage_collector::garbage_collector(asio::any_io_executor executor, environment with)
    : executor_(executor), environment_(with), tasks_(executor) {}

asio::awaitable<void> garbage_collector::close() {
  tasks_.cancel();
  co_await tasks_.join();
}

void garbage_collector::follow(const std::shared_ptr<cluster>& in, const resource& of,
                               const change& change) {
  const auto& now = *change.after;
  using kind = gc_task::kind;
  in->owners.follow(of.storage_key, change);
  if (of.storage_key == definitions_key) follow_definition(*in, change);
  if (now.owners() != nullptr && !change.deleted) {
    add(in, {kind::examine_dependent, {of.storage_key, now.path()}});
  }
  if (in->running_deployments && of.storage_key == deployments_key && !change.deleted &&
      !is_observed(now.parse())) {
    add(in, {kind::run_deployment, {of.storage_key, now.path()}});
  }
  if (!change.deleted && now.is_being_deleted()) {
    if (of.storage_key == namespaces_key) add(in, {kind::empty_namespace, {"", now.path()}});
    if (of.storage_key == definitions_key) add(in, {kind::empty_definition, {"", now.path()}});
    add(in, {kind::finish_owner, {of.storage_key, now.path()}});
  }
  if (!change.deleted) return;
  // Namespaces, definitions, dependents and owners that wait for this deletion.
  const auto namespaces = in->objects.find(namespaces_key);
  const auto home = namespaces ? namespaces->find(now.ns()) : nullptr;
  if (home && home->is_being_deleted()) add(in, {kind::empty_namespace, {"", home->path()}});
  const auto definitions = of.custom ? in->objects.find(definitions_key) : nullptr;
  const auto definition = definitions ? definitions->find(of.storage_key) : nullptr;
  if (definition && definition->is_being_deleted()) {
    add(in, {kind::empty_definition, {"", definition->path()}});
  }
  if (in->owners.empty() && now.owners() == nullptr) return;
  const auto object = now.parse();
  for (auto& place : in->owners.dependents_of(find_string(object, {"metadata", "uid"}))) {
    add(in, {kind::examine_dependent, std::move(place)});
  }
  const auto* references = references_of(object);
  if (references == nullptr) return;
  for (const auto& reference : *references) {
    auto owner = place_of(*in, reference, now.ns());
    const auto there = find_object(*in, owner);
    if (there && there->is_being_deleted()) add(in, {kind::finish_owner, std::move(owner)});
  }
}

void garbage_collector::add(const std::shared_ptr<cluster>& in, gc_task task) {
  // That of definitions is a part of kube-apiserver.
  const bool always =
      task.work == gc_task::kind::empty_definition || task.work == gc_task::kind::run_deployment;
  if (!in->controllers && !always) return;
  in->gc_tasks.open.insert(std::move(task));
  resume(in);
}

void garbage_collector::resume(const std::shared_ptr<cluster>& in) {
  if (in->gc_tasks.running || in->gc_tasks.open.empty()) return;
  in->gc_tasks.running = true;
  tasks_.spawn(work_off(in));
}

asio::awaitable<void> garbage_collector::work_off(std::shared_ptr<cluster> in) {
  auto& open = in->gc_tasks.open;
  shift working(in->gc_tasks);
  auto& again = working.again;
  while (!in->removed && (!open.empty() || !again.empty())) {
    if (open.empty()) {
      const auto timer = environment_.clock.make_timer(executor_);
      timer->expires_at(environment_.clock.now() + pause);
      co_await timer->wait();
      open.merge(again);
      again.clear();
    }
    // Yields before each task, so that requests are served in between.
    co_await asio::post(executor_, asio::use_awaitable);
    if (open.empty()) continue;
    const auto task = open.extract(open.begin()).value();
    again.insert(task);
    const bool done = co_await perform(in, task);
    if (done) again.erase(task);
  }
}

asio::awaitable<bool> garbage_collector::perform(std::shared_ptr<cluster> in, gc_task task) {
  switch (task.work) {
    case gc_task::kind::empty_namespace:
      return empty_namespace(std::move(in), std::move(task.place.path));
    case gc_task::kind::empty_definition:
      return empty_definition(std::move(in), std::move(task.place.path));
    case gc_task::kind::examine_dependent:
      return examine_dependent(std::move(in), std::move(task.place));
    case gc_task::kind::run_deployment:
      return run_deployment(std::move(in), std::move(task.place.path));
    case gc_task::kind::finish_owner:
      break;
  }
  return finish_owner(std::move(in), std::move(task.place));
}

asio::awaitable<bool> garbage_collector::remove(call call, std::string propagation) {
  delete_options with;
  with.propagation = std::move(propagation);
  writes::request request{call,
                          [this, call, with] { return environment_.planner.remove(call, with); }};
  request.context.options = {{"propagationPolicy", with.propagation}};
  request.asks_webhooks = !is_definition_controller(call);
  const auto name = call.path();
  const auto done = co_await environment_.write.write(std::move(request));
  if (done.has_value() || done.error().code == 404) co_return true;
  environment_.log.limited(failures_, core::log_level::warning,
                           "dependent object could not be deleted; retrying in a second",
                           {{"object", name}, {"error", done.error().message}});
  co_return false;
}

asio::awaitable<bool> garbage_collector::edit(call call, std::function<void(json::value&)> change) {
  writes::request request{call, [this, call, change = std::move(change)] {
                            return environment_.planner.edit(call, change);
                          }};
  request.asks_webhooks = !is_definition_controller(call);
  const auto name = call.path();
  const auto done = co_await environment_.write.write(std::move(request));
  if (done.has_value() || done.error().code == 404) co_return true;
  environment_.log.limited(failures_, core::log_level::warning,
                           "dependent object could not be changed; retrying in a second",
                           {{"object", name}, {"error", done.error().message}});
  co_return false;
}

asio::awaitable<bool> garbage_collector::empty_namespace(std::shared_ptr<cluster> in,
                                                         std::string name) {
  const auto home = find_object(*in, {std::string(namespaces_key), name});
  if (!home || !home->is_being_deleted()) co_return true;
  std::vector<call> content;
  bool waits = false;
  in->objects.for_each([&](const std::string& key, collection& collection) {
    for (const auto& object : collection.all(name)) {
      waits = waits || object->is_being_deleted();
      if (object->is_being_deleted()) continue;
      content.push_back(call_for(in, view_of(*in, key), object->key(), "namespace-controller"));
    }
  });
  bool good = true;
  for (auto& record : content) {
    const bool gone = co_await remove(std::move(record), "Background");
    good = good && gone;
  }
  // The deletion of an object that a finalizer keeps adds this task again.
  if (!content.empty() || waits) co_return good;
  auto to = call_for(in, view_of(*in, namespaces_key), {"", name}, "namespace-controller");
  to.subresource = "finalize";
  co_return co_await edit(std::move(to), [](json::value& object) {
    object_in(object.as_object(), "spec").erase("finalizers");
  });
}

asio::awaitable<bool> garbage_collector::empty_definition(std::shared_ptr<cluster> in,
                                                          std::string name) {
  const auto definition = find_object(*in, {std::string(definitions_key), name});
  if (!definition || !definition->is_being_deleted()) co_return true;
  const auto objects = in->objects.find(name);
  const auto all = objects ? objects->all({}) : std::vector<record_ptr>();
  bool good = true;
  for (const auto& object : all) {
    if (object->is_being_deleted()) continue;
    auto call = call_for(in, view_of(*in, name), object->key(), "crd-controller");
    const bool gone = co_await remove(std::move(call), "Background");
    good = good && gone;
  }
  if (!all.empty()) {
    // The deletions above have added this task again.
    co_return good;
  }
  co_return co_await edit(
      call_for(in, view_of(*in, definitions_key), {"", name}, "crd-controller"),
      [](json::value& object) { drop_finalizer(object, definition_finalizer); });
}

asio::awaitable<bool> garbage_collector::run_deployment(std::shared_ptr<cluster> in,
                                                        std::string path) {
  const auto present = find_object(*in, {std::string(deployments_key), path});
  if (!present || is_observed(present->parse())) co_return true;
  auto to = call_for(in, view_of(*in, deployments_key), key_of(path), "deployment-controller");
  to.subresource = "status";
  co_return co_await edit(std::move(to), [this](json::value& object) {
    auto status = deployment_status(object, true, {}, environment_.clock.wall());
    object.as_object()["status"] = std::move(status);
  });
}

asio::awaitable<bool> garbage_collector::examine_dependent(std::shared_ptr<cluster> in,
                                                           object_place object_place) {
  const auto present = find_object(*in, object_place);
  if (!present || present->owners() == nullptr || present->is_being_deleted()) co_return true;
  const auto object = present->parse();
  std::vector<std::string> gone;
  bool kept = false;
  bool awaited = false;  // by an owner that is deleted after its dependents
  for (const auto& reference : *references_of(object)) {
    const std::string uid(find_string(reference, {"uid"}));
    const auto place = place_of(*in, reference, present->ns());
    // If the kind is not served, the owner may still exist.
    const auto owner = find_object(*in, place);
    const bool there = owner && find_string(owner->parse(), {"metadata", "uid"}) == uid;
    if (place.storage_key.empty()) {
      kept = true;
    } else if (!there) {
      gone.push_back(uid);
    } else if (owner->is_being_deleted() && has_finalizer(owner->parse(), foreground)) {
      awaited = true;
      gone.push_back(uid);
    } else {
      kept = true;
    }
  }
  if (gone.empty()) co_return true;
  auto to = call_for(in, view_of(*in, object_place.storage_key), present->key(),
                     "generic-garbage-collector");
  if (kept) {
    co_return co_await edit(std::move(to),
                            [gone](json::value& changed) { drop_references(changed, gone); });
  }
  const auto dependents = in->owners.dependents_of(find_string(object, {"metadata", "uid"}));
  std::string propagation = "Background";
  if (has_finalizer(object, orphan)) propagation = "Orphan";
  if (awaited && !dependents.empty()) propagation = "Foreground";
  co_return co_await remove(std::move(to), std::move(propagation));
}

asio::awaitable<bool> garbage_collector::finish_owner(std::shared_ptr<cluster> in,
                                                      object_place object_place) {
  const auto present = find_object(*in, object_place);
  if (!present || !present->is_being_deleted()) co_return true;
  const auto object = present->parse();
  const std::string uid(find_string(object, {"metadata", "uid"}));
  const auto to = call_for(in, view_of(*in, object_place.storage_key), present->key(),
                           "generic-garbage-collector");
  const auto dependents = in->owners.dependents_of(uid);
  if (has_finalizer(object, orphan)) {
    bool good = true;
    for (const auto& place : dependents) {
      auto dependent = call_for(in, view_of(*in, place.storage_key), key_of(place.path),
                                "generic-garbage-collector");
      const bool freed = co_await edit(
          std::move(dependent), [uid](json::value& changed) { drop_references(changed, {uid}); });
      good = good && freed;
    }
    if (!good) co_return false;
    co_return co_await edit(to, [](json::value& changed) { drop_finalizer(changed, orphan); });
  }
  if (!has_finalizer(object, foreground)) co_return true;
  bool blocked = false;
  for (const auto& place : dependents) {
    const auto dependent = find_object(*in, place);
    if (!dependent) continue;
    const auto value = dependent->parse();
    for (const auto& reference : *references_of(value)) {
      if (find_string(reference, {"uid"}) != uid || !true_at(reference, {"blockOwnerDeletion"})) {
        continue;
      }
      blocked = true;
      in->gc_tasks.open.insert({gc_task::kind::examine_dependent, place});
    }
  }
  if (blocked) co_return true;
  co_return co_await edit(to, [](json::value& changed) { drop_finalizer(changed, foreground); });
}

}  // namespace rw::k8s::devserver
