#pragma once

#include "rw/k8s/client/write_preview.hpp"
#include "rw/k8s/objects/failure.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw {

/// What the next pass of a reactor would do on one runtime. The pass's own code computes it, with a
/// client that only tries its writes.
struct pass_preview {
  std::string component = {};
  std::vector<k8s::tried_write> writes = {};      ///< to the runtime
  std::vector<k8s::tried_write> kcp_writes = {};  ///< those that end a removal
  /// What is not written, and what that waits for, each a sentence.
  std::vector<std::string> waits = {};
  bool awaits_turn = false;  ///< one of them is a turn in the roll-out of the component
  std::string error = {};    ///< why the writes are not known, or not all; empty: they are
};

/// Time that previews of one runtime may take together.
constexpr std::chrono::seconds preview_limit(15);

/// Collects the writes of a pass that is previewed.
struct preview_writes {
  std::shared_ptr<k8s::write_preview> runtime = std::make_shared<k8s::write_preview>();
  std::shared_ptr<k8s::write_preview> kcp = std::make_shared<k8s::write_preview>();
};

/// Completes a preview by what was collected, and by how its pass has ended; nothing: the limit
/// came first.
pass_preview complete(pass_preview of, const preview_writes& writes,
                      const std::optional<k8s::result<void>>& ended);

/// Says that a roll-out, that of `component`, has not admitted the runtime to what `subject` is to
/// become.
inline std::string awaits_turn(const std::string& subject, const std::string& component) {
  return "the roll-out has not admitted it: nothing new of " + subject +
         " is written until then (runtime-watcher rollout status " + component + ")";
}

}  // namespace rw
