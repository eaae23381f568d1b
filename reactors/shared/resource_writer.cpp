#include "rw/reactors/shared/resource_writer.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace rw {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

/// Maximum delay of a foreign change on its way to the informer.
constexpr auto conflict_pause = std::chrono::milliseconds(200);

/// The merge patch that gives an object the finalizers of `next`: it replaces the list as a whole.
json::value finalizers_patch(const json::value& next) {
  const auto* const all = k8s::find(next, {"metadata", "finalizers"});
  return {{"metadata", {{"finalizers", all == nullptr ? json::value(json::array()) : *all}}}};
}

}  // namespace

asio::awaitable<resource_writer::ended> resource_writer::patch(json::value* resource,
                                                               json::value change,
                                                               std::string subresource) {
  using result = k8s::reconcile_result;
  const auto key = k8s::key_of(*resource);
  auto& metadata = change.as_object()["metadata"];
  if (!metadata.is_object()) metadata = json::object();
  metadata.as_object()["resourceVersion"] = k8s::resource_version_of(*resource);
  auto written = co_await kcp_.patch(type_, key, k8s::patch_type::merge, std::move(change),
                                     {.subresource = std::move(subresource)});
  if (written) {
    own_writes_.wrote(*written);
    *resource = std::move(*written);
    co_return std::nullopt;
  }
  own_writes_.forget(key);
  if (written.error().is(k8s::errc::not_found)) co_return result::done();
  if (written.error().is(k8s::errc::conflict)) co_return result::requeue_after(conflict_pause);
  co_return result::error(written.error());
}

asio::awaitable<resource_writer::ended> resource_writer::write_status(json::value* resource,
                                                                      json::value status) {
  // A merge patch must name the members that it removes.
  const auto* const before = k8s::find(*resource, {"status"});
  if (before != nullptr && before->is_object()) {
    for (const auto& [name, unused] : before->get_object()) {
      status.as_object().emplace(name, nullptr);
    }
  }
  json::value change{{"status", std::move(status)}};
  auto written = co_await patch(resource, std::move(change), "status");
  co_return written;
}

asio::awaitable<resource_writer::ended> resource_writer::set_finalizer(json::value* resource,
                                                                       std::string name,
                                                                       bool present) {
  auto next = *resource;
  const bool differs = present ? k8s::add_finalizer(next, name) : k8s::remove_finalizer(next, name);
  if (!differs) co_return std::nullopt;
  auto written = co_await patch(resource, finalizers_patch(next));
  co_return written;
}

asio::awaitable<k8s::result<void>> resource_writer::try_release(
    json::value resource, std::string finalizer, std::shared_ptr<k8s::write_preview> into) {
  auto next = resource;
  if (!k8s::remove_finalizer(next, finalizer)) co_return k8s::result<void>();
  const auto key = k8s::key_of(resource);
  auto tried = co_await kcp_.patch(type_, key, k8s::patch_type::merge, finalizers_patch(next),
                                   {.dry_run = true});
  if (!tried) co_return tried.error();
  into->add({.type = type_, .key = key, .live = std::move(resource), .next = std::move(*tried)});
  co_return k8s::result<void>();
}

}  // namespace rw
