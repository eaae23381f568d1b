#include "rw/k8s/devserver/admission_gate.hpp"

#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/scale.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::string_view configurations_key =
    "validatingwebhookconfigurations.admissionregistration.k8s.io";
constexpr std::string_view mutating_key =
    "mutatingwebhookconfigurations.admissionregistration.k8s.io";

asio::awaitable<void> close_webhooks(std::shared_ptr<webhooks> gone) {
  co_await gone->close();
}

json::value labels_of_namespace(const cluster& in, std::string_view name) {
  const auto namespaces = in.objects.find("namespaces");
  const auto found = namespaces ? namespaces->find(name) : nullptr;
  return found && found->labels() != nullptr ? *found->labels() : json::value();
}

/// Returns the options of the creation or update that a patch results in.
json::value options_for(std::string_view operation, const json::value& options) {
  const auto* const kind = operation == "CREATE"   ? "CreateOptions"
                           : operation == "DELETE" ? "DeleteOptions"
                                                   : "UpdateOptions";
  json::object made{{"kind", kind}, {"apiVersion", "meta.k8s.io/v1"}};
  if (!options.is_object()) return made;
  for (const auto& [name, value] : options.get_object()) made[name] = value;
  return made;
}

}  // namespace

admission_attributes attributes_of(const call& to, const write_plan& plan,
                                   const write_context& context) {
  admission_attributes made;
  made.type = to.view.type();
  made.subresource = to.subresource;
  made.operation = plan.operation;
  made.key = plan.key;
  if (context.of_collection) made.key.name.clear();
  const bool scales = to.subresource == scale_subresource;
  const auto shown = [&](const json::value& object) {
    return scales && !object.is_null() ? scale_of(to.view, object) : object;
  };
  const auto* const part = find_subresource(to.view.of->storage_key, to.subresource);
  if (part != nullptr) made.shown_as = part->type();
  if (scales) made.shown_as = scale_kind();
  if (made.operation != "DELETE") made.object = shown(plan.object);
  made.old_object = shown(plan.old);
  made.options = options_for(made.operation, context.options);
  // A Pod's strategy decides its grace period before.
  const auto* const grace = find(plan.object, {"metadata", "deletionGracePeriodSeconds"});
  if (made.operation == "DELETE" && to.view.of->storage_key == "pods" && grace != nullptr) {
    made.options.as_object()["gracePeriodSeconds"] = *grace;
  }
  made.namespace_labels = labels_of_namespace(*to.in, plan.key.ns);
  made.user = to.by.user;
  made.groups = to.by.groups;
  made.dry_run = context.dry_run;
  made.refuse_unsupported = to.refuse_unsupported;
  made.warnings = to.warnings;
  for (const auto& version : to.view.of->versions) {
    if (version.served && &version != to.view.version) made.other_versions.push_back(version.name);
  }
  return made;
}

json::value options_of(const call& from) {
  json::object made;
  if (from.parameters.has("dryRun")) made["dryRun"] = json::array{"All"};
  for (const auto* name : {"fieldManager", "fieldValidation"}) {
    const auto value = from.parameters.get(name);
    if (!value.empty()) made[name] = value;
  }
  return made;
}

admission_gate::admission_gate(asio::any_io_executor executor, webhooks::environment with,
                               devserver::service_resolver services)
    : executor_(std::move(executor)),
      environment_(with),
      services_(std::move(services)),
      forgotten_(executor_) {}

std::shared_ptr<webhooks> admission_gate::open(const cluster& in) {
  auto& own = all_[&in];
  if (own) return own;
  own = std::make_shared<webhooks>(executor_, environment_);
  if (services_) {
    own->resolve_services_by([this, name = in.name](const object_key& service, unsigned port) {
      return services_(name, service.ns + "/" + service.name + ":" + std::to_string(port));
    });
  }
  return own;
}

void admission_gate::follow(const cluster& in, const resource& of, const change& change) {
  const bool mutates = of.storage_key == mutating_key;
  if ((of.storage_key != configurations_key && !mutates) || in.removed || closed_) return;
  open(in)->set_configuration(change.after->path(),
                              change.deleted ? json::value() : change.after->parse(), mutates);
}

bool admission_gate::is_open(const cluster& in) const {
  const auto at = all_.find(&in);
  return at == all_.end() || at->second->empty();
}

asio::awaitable<outcome<void>> admission_gate::admit(const cluster* in,
                                                     admission_attributes write) {
  const auto at = all_.find(in);
  if (at == all_.end()) co_return outcome<void>();
  const auto asked = at->second;
  co_return co_await asked->admit(std::move(write));
}

asio::awaitable<outcome<json::value>> admission_gate::mutate(const cluster* in,
                                                             admission_attributes write) {
  const auto at = all_.find(in);
  if (at == all_.end()) co_return json::value();
  const auto asked = at->second;
  co_return co_await asked->mutate(std::move(write));
}

void admission_gate::forget(const cluster& in) {
  auto gone = all_.extract(&in);
  if (!gone.empty()) forgotten_.spawn(close_webhooks(std::move(gone.mapped())));
}

asio::awaitable<void> admission_gate::close() {
  closed_ = true;
  for (auto all = std::exchange(all_, {}); const auto& [in, webhooks] : all)
    co_await webhooks->close();
  co_await forgotten_.join();
}

}  // namespace rw::k8s::devserver
