#include "rw/reactors/shared/status_reason.hpp"

#include "rw/reactors/shared/explanations.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace rw {
namespace {

static_assert(static_cast<std::size_t>(status_reason::gateway_unreachable) + 1 ==
              std::size(runtime_reasons));
static_assert(find_entry(kind_not_served) && find_entry(definition_outdated));

/// In the order of the enumeration.
constexpr std::array words = [] {
  std::array<std::string_view, std::size(runtime_reasons)> out;
  std::ranges::transform(runtime_reasons, out.begin(), &explanation::word);
  out.front() = {};  // none
  return out;
}();

constexpr std::size_t index_of(status_reason of) {
  return static_cast<std::size_t>(of);
}

}  // namespace

std::string_view to_string(status_reason of) noexcept {
  return words[index_of(of)];
}

std::optional<status_reason> parse_status_reason(std::string_view word) noexcept {
  const auto at = std::ranges::find(words, word);
  if (word.empty() || at == words.end()) return {};
  return static_cast<status_reason>(at - words.begin());
}

status_reason reason_of_pod(std::string_view word) noexcept {
  if (word.empty()) return status_reason::none;
  const auto first = words.begin() + index_of(status_reason::no_pods);
  const auto last = words.begin() + index_of(status_reason::pod_failing);
  return static_cast<status_reason>(std::find(first, last, word) - words.begin());
}

namespace {

/// Whether it rejects an object because the object's namespace is being deleted: with 403, and in
/// most versions with a cause (kube-apiserver, plugin/pkg/admission/namespace/lifecycle).
bool is_namespace_terminating(const k8s::failure& error) noexcept {
  return error.is(k8s::errc::forbidden) &&
         (std::ranges::find(error.causes, "NamespaceTerminating", &k8s::failure_cause::reason) !=
              error.causes.end() ||
          error.message.find("because it is being terminated") != std::string::npos);
}

}  // namespace

status_reason reason_of_failure(const k8s::failure& error) noexcept {
  using k8s::errc;
  if (is_namespace_terminating(error)) return status_reason::namespace_terminating;
  if (k8s::is_access_rejected(error)) return status_reason::access_rejected;
  // An admission webhook, a policy and a quota reject with 403, too.
  const bool by_admission = error.message.find("denied the request") != std::string::npos ||
                            error.message.find("denied request") != std::string::npos ||
                            error.message.find("exceeded quota") != std::string::npos;
  if (error.is(errc::forbidden) && !by_admission) return status_reason::access_denied;
  return k8s::is_permanent(error) ? status_reason::write_rejected : status_reason::request_failed;
}

bool is_unreachable(status_reason of) noexcept {
  using enum status_reason;
  return of == access_rejected || of == runtime_unreachable || of == runtime_slow;
}

bool is_progress(status_reason of) noexcept {
  using enum status_reason;
  return of == no_certificate || of == installing || of == no_pods || of == pod_not_ready ||
         of == container_creating || of == pod_initializing;
}

}  // namespace rw
