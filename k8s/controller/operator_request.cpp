#include "rw/k8s/controller/operator_request.hpp"

#include "rw/k8s/objects/types.hpp"

namespace rw::k8s {

namespace asio = boost::asio;
namespace json = boost::json;

asio::awaitable<result<json::value>> operator_scope::apply(resource_type of, json::value desired) {
  auto& fields = desired.as_object();
  fields.erase("status");
  auto& metadata = fields["metadata"].as_object();
  const auto owner = reference_to(object);
  if (of.namespaced && !metadata.contains("namespace") && !owner.ns.empty()) {
    metadata["namespace"] = owner.ns;
  }
  set_owner(desired, {.api_version = owner.api_version,
                      .kind = owner.kind,
                      .name = owner.name,
                      .uid = owner.uid,
                      .controller = true,
                      .block_owner_deletion = true});
  auto applied = co_await api.apply(std::move(of), std::move(desired), {.force = true});
  co_return applied;
}

asio::awaitable<result<void>> operator_scope::set_status(json::value status) {
  const auto* const observed = find(object, {"status"});
  if (observed != nullptr && *observed == status) co_return result<void>();
  const auto about = reference_to(object);
  json::object metadata{{"name", about.name}};
  if (!about.ns.empty()) metadata.emplace("namespace", about.ns);
  json::value change{{"apiVersion", about.api_version},
                     {"kind", about.kind},
                     {"metadata", std::move(metadata)},
                     {"status", std::move(status)}};
  const auto written =
      co_await api.apply(type, std::move(change), {.force = true, .subresource = "status"});
  if (!written) co_return written.error();
  co_return result<void>();
}

}  // namespace rw::k8s
