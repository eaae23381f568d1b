#include "rw/reactors/runtime_controller/pass_preview.hpp"

namespace rw {

pass_preview complete(pass_preview of, const preview_writes& writes,
                      const std::optional<k8s::result<void>>& ended) {
  of.writes = writes.runtime->take();
  of.kcp_writes = writes.kcp->take();
  std::string error;
  if (!ended) {
    error = "the runtime has not answered all requests within " +
            std::to_string(preview_limit.count()) + " s";
  } else if (!*ended) {
    error = ended->error().message;
  }
  if (!error.empty()) of.error += (of.error.empty() ? "" : "; ") + error;
  return of;
}

}  // namespace rw
