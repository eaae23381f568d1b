#include "rw/reactors/watcher_controller/watcher_status.hpp"

#include "rw/core/text.hpp"
#include "rw/reactors/shared/explanations.hpp"

#include <boost/json/object.hpp>

#include <utility>

namespace rw::watcher_controller {
namespace {

namespace json = boost::json;

constexpr std::size_t message_limit = 4096;  // the schema's is 32768, more than a person reads

k8s::condition virtual_service_is(std::string status, std::string reason, std::string message) {
  return {"VirtualService"_reason, std::move(status), std::move(reason), std::move(message)};
}

}  // namespace

desired_status processing() {
  return {"Processing",
          virtual_service_is("Unknown", "Processing"_reason, "VirtualService is being configured")};
}

desired_status ready(std::string_view unobserved, bool status_field) {
  std::string message = "VirtualService is configured";
  if (!unobserved.empty()) {
    message += "; events come from reviews alone (" + std::string(unobserved) + ")";
  }
  if (status_field) message += "; without a live watch creations and deletions cause no event";
  return {"Ready", virtual_service_is("True", "Ready"_reason, std::move(message))};
}

desired_status failed(const watcher_error& error) {
  return {"Error"_reason, virtual_service_is("False", error.reason,
                                             core::middle_cut(error.message, message_limit))};
}

desired_status deleting() {
  return {"Deleting"};
}

desired_status deleting(const watcher_error& error) {
  return {"Deleting", failed(error).condition};
}

std::optional<json::value> next_status(const json::value& watcher, const desired_status& to,
                                       std::chrono::system_clock::time_point now) {
  const auto* const before = k8s::find(watcher, {"status"});
  json::value next{{"status", before != nullptr && before->is_object() ? *before : json::object()}};
  auto& status = next.as_object()["status"].as_object();
  status["state"] = to.state;
  status["observedGeneration"] = k8s::generation_of(watcher);
  if (to.condition) k8s::set_condition(next, *to.condition, now);
  auto& made = next.as_object()["status"];
  if (before != nullptr && *before == made) return std::nullopt;
  return std::move(made);
}

std::string_view state_of(const json::value& watcher) noexcept {
  return k8s::find_string(watcher, {"status", "state"});
}

}  // namespace rw::watcher_controller
