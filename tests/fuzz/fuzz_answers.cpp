// What API servers of runtimes answer beside lists: Status objects and discovery, and objects that
// are read for verdicts: Deployments, pods and Watchers. Texts for people are printable, and what
// is taken is within its bounds.

#include "rw/core/text.hpp"
#include "rw/k8s/client/discovery.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/status.hpp"
#include "rw/reactors/runtime_controller/workload.hpp"
#include "rw/reactors/shared/watcher.hpp"

#include "tests/fuzz/check.hpp"
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using rw::fuzz::check;
namespace k8s = rw::k8s;

bool is_printable(std::string_view text) {
  return rw::core::printable(text) == text;
}

void check_status(std::string_view text) {
  for (const unsigned status : {403u, 404u, 409u, 422u, 429u, 500u}) {
    rw::http::response answer;
    answer.status = status;
    answer.body = text;
    answer.headers.add("content-type", "application/json");
    answer.headers.add("retry-after", std::string(text.substr(0, 40)));
    const auto found =
        k8s::failure_of(answer, "cannot do it", std::chrono::system_clock::time_point());
    check(found.status == status && found.code.failed(), "a failure keeps its status");
    check(is_printable(found.message), "a message is printable");
    check(is_printable(found.reason), "a reason is printable");
    check(found.retry_after.count() >= 0 && found.retry_after <= std::chrono::minutes(5),
          "a pause has a bound");
    check(found.causes.size() <= 32, "causes have a bound");
    for (const auto& cause : found.causes) {
      check(is_printable(cause.message) && is_printable(cause.field), "a cause is printable");
    }
  }
}

void check_discovery(const boost::json::value& answer) {
  if (const auto found = k8s::resources_of(answer, {"apps", "v1", ""})) {
    for (const auto& each : *found) check(!each.type.plural.empty(), "a resource has a name");
  }
  k8s::versions_of(answer, "apps");
  k8s::versions_of(answer, "");
  k8s::server_version_of(answer);
}

void check_workload(const boost::json::value& object) {
  rw::is_rolled_out(object);
  rw::has_given_up(object);
  rw::pods_of(object);
  rw::names_of_pods(object);
  for (const auto& state :
       {rw::inspect_pods(object, ""), rw::inspect_pods(object, object, "hash")}) {
    check(is_printable(state.error()), "what keeps pods from being ready is printable");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_status(text);
  const auto read = k8s::read_json(text);
  if (!read) return 0;
  check_discovery(*read);
  check_workload(*read);
  if (const auto watcher = rw::read_watcher(*read)) {
    check(!watcher->manager.empty(), "a Watcher names its manager");
    check(rw::last_valid_text(*read).size() <= 16 * size + 256,
          "what is kept of a Watcher is no larger than it");
  } else {
    check(is_printable(watcher.error().message), "what is wrong with a Watcher is printable");
  }
  rw::last_valid_watcher(*read, *read);
  return 0;
}
