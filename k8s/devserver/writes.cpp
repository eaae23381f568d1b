#include "rw/k8s/devserver/writes.hpp"

#include "rw/k8s/devserver/builtin_decoding.hpp"
#include "rw/k8s/devserver/builtin_rules.hpp"
#include "rw/k8s/devserver/conversion.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/json_reader.hpp"
#include "rw/k8s/devserver/protobuf.hpp"
#include "rw/k8s/devserver/selection.hpp"
#include "rw/k8s/devserver/write_rules.hpp"
#include "rw/k8s/devserver/yaml.hpp"

#include <algorithm>
#include <chrono>

namespace rw::k8s::devserver {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

/// Time limit of a write that is planned again because the object changes while its webhooks run:
/// the request timeout of kube-apiserver.
constexpr auto longest_write = std::chrono::minutes(1);

/// Returns the media type without its parameters.
std::string_view media_type(const http::request& from) {
  auto type = from.headers.get("content-type");
  type = type.substr(0, type.find(';'));
  while (!type.empty() && type.back() == ' ') type.remove_suffix(1);
  return type;
}

bool is_protobuf(const http::request& from) {
  return media_type(from) == protobuf_media_type;
}

/// Fields that the body has twice are added to `duplicates`; a body of YAML can't have any.
outcome<json::value> parse_body(const call& to, const http::request& from, repeated_fields repeated,
                                bool yaml, std::vector<std::string>* duplicates) {
  std::string reason;
  if (auto read = read_json(from.body, repeated, reason)) {
    if (duplicates != nullptr) *duplicates = std::move(read->duplicates);
    return std::move(read->value);
  }
  auto value = yaml ? parse_yaml(from.body, reason) : std::nullopt;
  if (value) return std::move(*value);
  return bad_request("the object provided is unrecognized (must be of type " + to.view.of->kind +
                     "): couldn't get version/kind; json parse error: " + reason);
}

outcome<patch_kind> parse_patch_kind(const call& to, const http::request& from) {
  const auto type = media_type(from);
  if (type == "application/json-patch+json") return patch_kind::json;
  if (type == "application/merge-patch+json") return patch_kind::merge;
  if (type == "application/apply-patch+yaml") return patch_kind::apply;
  if (type == "application/strategic-merge-patch+json" && !to.view.of->custom) {
    return patch_kind::strategic;
  }
  return unsupported_media_type(
      to.view.of->custom ? "application/json-patch+json, application/merge-patch+json, "
                           "application/apply-patch+yaml"
                         : "application/json-patch+json, application/merge-patch+json, "
                           "application/strategic-merge-patch+json, application/apply-patch+yaml");
}

/// Checks options that an apply requires, or that only an apply may have.
outcome<void> check_patch_options(const call& to, patch_kind patch_kind) {
  const auto refused = [](std::string field, std::string reason,
                          std::string message) -> outcome<void> {
    return invalid({"meta.k8s.io", "PatchOptions", ""},
                   {{std::move(field), std::move(reason), std::move(message)}});
  };
  if (patch_kind != patch_kind::apply && to.parameters.has("force")) {
    return refused("force", "FieldValueForbidden",
                   "Forbidden: may not be specified for non-apply patch");
  }
  if (patch_kind == patch_kind::apply && to.parameters.get("fieldManager").empty()) {
    return refused("fieldManager", "FieldValueRequired",
                   "Required value: is required for apply patch");
  }
  return {};
}

json::value success(const call& to, const json::value& removed) {
  json::object details{{"name", find_string(removed, {"metadata", "name"})}};
  if (!to.view.of->group.empty()) details["group"] = to.view.of->group;
  details["kind"] = to.view.of->plural;
  details["uid"] = find_string(removed, {"metadata", "uid"});
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", json::object()},
          {"status", "Success"},
          {"details", std::move(details)}};
}

void answer_write(const call& to, const outcome<writes::written>& done, http::response& into) {
  if (done.has_error()) {
    answer(into, done.error());
    return;
  }
  const auto& plan = done->plan;
  const bool deletes = std::string_view(plan.operation) == "DELETE";
  const bool gone = plan.effect == write_plan::action::remove;
  if (deletes && gone && !to.view.of->returns_deleted) {
    answer(into, 200, success(to, plan.object));
  } else {
    answer(into, plan.before ? 200 : 201, to, *done->object);
  }
}

record_ptr present(const call& to, const write_plan& plan) {
  return to.objects()->find(storage_path(plan.key.ns, plan.key.name));
}

/// Returns true if the object is the one that the plan was computed from.
bool is_current(const call& to, const write_plan& plan) {
  return present(to, plan) == plan.before;
}

/// Returns false if another object has received what the server picked for this new one.
bool has_room(const call& to, const write_plan& plan) {
  return plan.before || has_room_for(*to.in, *to.view.of, plan.object);
}

/// Returns the conflict of a plan that was computed just now.
problem taken(const call& to, const write_plan& plan) {
  const subject subject{to.view.of->group, to.view.of->plural, plan.key.name};
  auto problem = already_exists(subject);
  if (present(to, plan)->is_being_deleted()) {
    problem.message = "object is being deleted: " + problem.message;
  }
  return problem;
}

/// Other writes may have happened while webhooks ran: the kind or the namespace may be deleted.
outcome<void> check_still_possible(const call& to, const write_plan& plan) {
  const auto& of = *to.view.of;
  const auto served = to.in->kinds.find(of.group, to.view.version->name, of.plural);
  if (to.in->removed || !served) return no_such_resource();
  if (plan.before) return {};
  return check_room(to);
}

}  // namespace

outcome<json::value> parse_object(const call& to, const http::request& from,
                                  std::vector<std::string>* duplicates) {
  const auto type = media_type(from);
  const bool yaml = type == "application/yaml";
  if (yaml || type.empty() || type == "application/json") {
    const auto repeated = to.view.of->custom ? repeated_fields::replaced : repeated_fields::merged;
    return parse_body(to, from, repeated, yaml, duplicates);
  }
  if (is_protobuf(from) && !to.view.of->custom) return decode_protobuf(from.body);
  return unsupported_media_type("application/json, application/yaml, " +
                                std::string(protobuf_media_type));
}

outcome<json::value> parse_part(const call& to, const http::request& from) {
  auto object = parse_object(to, from);
  if (object.has_error()) return object.error();
  const auto type = find_subresource(to.view.of->storage_key, to.subresource)->type();
  std::vector<std::string> unknown;
  const auto undecodable =
      object->is_object()
          ? decode_builtin(*find_builtin_type(type.api_version(), type.kind), *object, unknown)
          : "the body is no object";
  if (!undecodable.empty()) {
    return bad_request(type.kind + " in version \"" + type.version + "\": " + undecodable);
  }
  auto& fields = object->get_object();
  fields["apiVersion"] = type.api_version();
  fields["kind"] = type.kind;
  object_in(fields, "metadata")["namespace"] = to.key.ns;
  return object;
}

asio::awaitable<void> writes::create(call to, const http::request& from, http::response& into) {
  return put(std::move(to), &write_planner::create, from, into);
}

asio::awaitable<void> writes::update(call to, const http::request& from, http::response& into) {
  return put(std::move(to), &write_planner::update, from, into);
}

/// Writes a whole object.
asio::awaitable<void> writes::put(call to, whole_plan make, const http::request& from,
                                  http::response& into) {
  std::vector<std::string> duplicates;
  auto object = parse_object(to, from, &duplicates);
  auto with = write_options::parse(to);
  if (object.has_error() || with.has_error()) {
    answer(into, object.has_error() ? object.error() : with.error());
    return {};
  }
  with->duplicate_fields = std::move(duplicates);
  auto make_plan = [this, make, to, object = std::move(*object), with = *with] {
    return (parts_.planner.*make)(to, object, with);
  };
  write_context context{.dry_run = with->dry_run, .options = options_of(to)};
  return perform({std::move(to), std::move(make_plan), std::move(context)}, into);
}

asio::awaitable<void> writes::patch(call to, const http::request& from, http::response& into) {
  const auto patch_kind = parse_patch_kind(to, from);
  auto with = write_options::parse(to);
  if (patch_kind.has_error() || with.has_error()) {
    answer(into, patch_kind.has_error() ? patch_kind.error() : with.error());
    return {};
  }
  const auto good = check_patch_options(to, *patch_kind);
  if (good.has_error()) {
    answer(into, good.error());
    return {};
  }
  std::vector<std::string> duplicates;
  auto change = parse_body(to, from, repeated_fields::replaced, *patch_kind == patch_kind::apply,
                           &duplicates);
  if (change.has_error()) {
    answer(into, change.error());
    return {};
  }
  if (*patch_kind != patch_kind::json) with->duplicate_fields = std::move(duplicates);
  auto make_plan = [this, to, patch_kind = *patch_kind, change = std::move(*change), with = *with] {
    return parts_.planner.patch(to, patch_kind, change, with);
  };
  write_context context{.dry_run = with->dry_run, .options = options_of(to)};
  return perform({std::move(to), std::move(make_plan), std::move(context)}, into);
}

asio::awaitable<void> writes::remove(call to, const http::request& from, http::response& into) {
  const auto with = delete_options::parse(to, from.body, is_protobuf(from));
  if (with.has_error()) {
    answer(into, with.error());
    return {};
  }
  auto make_plan = [this, to, with = *with] { return parts_.planner.remove(to, with); };
  write_context context{.dry_run = with->dry_run, .options = with->given};
  return perform({std::move(to), std::move(make_plan), std::move(context)}, into);
}

asio::awaitable<void> writes::remove_all(call to, const http::request& from, http::response& into) {
  const auto with = delete_options::parse(to, from.body, is_protobuf(from));
  const auto selected = selection::parse(to.key, to.parameters, *to.view.of);
  if (with.has_error() || selected.has_error()) {
    answer(into, with.has_error() ? with.error() : selected.error());
    return {};
  }
  auto chosen = to.objects()->all(selected->ns());
  std::erase_if(chosen, [&](const record_ptr& record) { return !selected->matches(*record); });
  return remove_each(std::move(to), *with, std::move(chosen), &into);
}

asio::awaitable<void> writes::remove_each(call to, delete_options with,
                                          std::vector<record_ptr> chosen, http::response* into) {
  std::vector<record_ptr> removed;
  for (const auto& record : chosen) {
    auto single = to;
    single.key = record->key();
    auto make_plan = [this, single, with] { return parts_.planner.remove(single, with); };
    request request{std::move(single), std::move(make_plan), {with.dry_run, true, with.given}};
    const auto done = co_await write(std::move(request));
    if (done.has_value()) {
      removed.push_back(done->object);
    } else if (done.error().code != 404) {
      // An object that another client has deleted meanwhile is fine; earlier deletions stay.
      answer(*into, done.error());
      co_return;
    }
  }
  into->status = 200;
  into->headers.add("content-type", "application/json");
  append_list(into->body, removed, to.view, to.show, {to.in->objects.version()});
}

asio::awaitable<void> writes::perform(request request, http::response& into) {
  if (!parts_.gate.is_open(*request.to.in)) return perform_asking(std::move(request), &into);
  answer_write(request.to, write_now(request), into);
  return {};
}

asio::awaitable<void> writes::perform_asking(request request, http::response* into) {
  const auto to = request.to;
  const auto done = co_await write_asking(std::move(request));
  answer_write(to, done, *into);
}

asio::awaitable<void> writes::create_unstored(call to, outcome<json::value> object,
                                              object_handler then, http::response& into) {
  if (object.has_error()) {
    answer(into, object.error());
    return {};
  }
  if (parts_.gate.is_open(*to.in)) return then(std::move(*object));
  return create_asking(std::move(to), std::move(*object), std::move(then), &into);
}

asio::awaitable<void> writes::create_asking(call to, json::value object, object_handler then,
                                            http::response* into) {
  write_plan plan;
  plan.key = to.key;
  plan.operation = "CREATE";
  plan.object = std::move(object);
  auto attributes =
      attributes_of(to, plan, {.dry_run = to.parameters.has("dryRun"), .options = options_of(to)});
  auto mutated = co_await parts_.gate.mutate(to.in.get(), attributes);
  if (mutated.has_error()) co_return answer(*into, mutated.error());
  if (mutated->is_object()) attributes.object = std::move(*mutated);
  object = attributes.object;
  const auto admitted = co_await parts_.gate.admit(to.in.get(), std::move(attributes));
  if (admitted.has_error()) co_return answer(*into, admitted.error());
  auto rest = then(std::move(object));
  if (rest.valid()) co_await std::move(rest);
}

asio::awaitable<outcome<writes::written>> writes::write(request request) {
  if (request.asks_webhooks && !parts_.gate.is_open(*request.to.in)) {
    return write_asking(std::move(request));
  }
  return write_at_once(std::move(request));
}

asio::awaitable<outcome<writes::written>> writes::write_at_once(request request) {
  co_return write_now(request);
}

asio::awaitable<outcome<writes::written>> writes::write_asking(request request) {
  const auto& to = request.to;
  const auto end = parts_.clock.now() + longest_write;
  auto plan = request.make_plan();
  while (plan.has_value()) {
    const bool had_room = has_room(to, *plan);
    auto attributes = attributes_of(to, *plan, request.context);
    auto mutated = co_await parts_.gate.mutate(to.in.get(), attributes);
    if (mutated.has_error()) co_return mutated.error();
    if (!mutated->is_null()) {
      const auto good = parts_.planner.adopt(to, *plan, std::move(*mutated));
      if (good.has_error()) co_return good.error();
      attributes.object = plan->object;
    }
    const auto admitted = co_await parts_.gate.admit(to.in.get(), std::move(attributes));
    if (admitted.has_error()) co_return admitted.error();
    const auto possible = check_still_possible(to, *plan);
    if (possible.has_error()) co_return possible.error();
    if (is_current(to, *plan) && (!had_room || has_room(to, *plan))) {
      auto object = commit(request, *plan);
      if (object.has_error()) co_return object.error();
      co_return written{std::move(*plan), std::move(*object)};
    }
    if (parts_.clock.now() >= end) co_return timed_out();
    plan = request.make_plan();
    if (plan.has_value() && !is_current(to, *plan)) co_return taken(to, *plan);
  }
  co_return plan.error();
}

outcome<writes::written> writes::write_now(const request& request) {
  auto plan = request.make_plan();
  if (plan.has_error()) return plan.error();
  if (!is_current(request.to, *plan)) return taken(request.to, *plan);
  auto object = commit(request, *plan);
  if (object.has_error()) return object.error();
  return written{std::move(*plan), std::move(*object)};
}

outcome<record_ptr> writes::commit(const request& request, const write_plan& plan) {
  const auto& to = request.to;
  if (plan.effect == write_plan::action::nothing) return plan.before;
  auto object = plan.object;
  to_stored(object, to.view);
  if (request.context.dry_run) {
    const auto version = plan.before ? plan.before->version() : 0;
    return std::make_shared<const record>(plan.key, version, std::move(object));
  }
  const auto collection = to.objects();
  auto made = to.in->objects.next(plan.key, std::move(object));
  const bool removes = plan.effect == write_plan::action::remove;
  if (!removes && made->text().size() > parts_.object_bytes) {
    return too_large("etcdserver: request is too large");
  }
  if (removes) {
    to.in->objects.remove(*collection, made);
  } else {
    to.in->objects.put(*collection, made);
  }
  if (parts_.observer) parts_.observer(to.in, *to.view.of, {plan.before, made, removes});
  return made;
}

}  // namespace rw::k8s::devserver
