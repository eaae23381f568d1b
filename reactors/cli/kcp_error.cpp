#include "rw/reactors/cli/kcp_error.hpp"

#include <utility>

namespace rw::cli {

kcp_error describe(const k8s::failure& of, const access_right& right, std::string absent) {
  using k8s::errc;
  if (of.is(errc::unauthorized) || of.is(errc::not_configured)) {
    return {"KCP does not accept the kubeconfig's credentials: " + of.message,
            "renew these credentials, or choose others: --kubeconfig, --context"};
  }
  if (of.is(errc::forbidden)) {
    return {"the kubeconfig's user may not " + text_of(right) + ": " + of.message,
            "grant that right, or use a kubeconfig that has it"};
  }
  if (of.is(errc::not_found) && of.reason.empty()) {
    const auto kind = right.resource + (right.group.empty() ? "" : "." + right.group);
    return {"the kubeconfig's server does not serve " + kind + ": " + of.message,
            "check the server's address in the kubeconfig" + (absent.empty() ? "" : "; " + absent)};
  }
  if (of.is(errc::not_found)) return {of.message, std::move(absent)};
  if (of.is(errc::unreachable) || of.is(errc::timed_out)) {
    return {"KCP does not respond: " + of.message,
            "check --kubeconfig and --context, and whether the API server is reachable"};
  }
  return {of.message, {}};
}

std::string text_of(const kcp_error& of) {
  return of.message + (of.next.empty() ? "" : "\n  fix: " + of.next);
}

}  // namespace rw::cli
