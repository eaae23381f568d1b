#pragma once

#include <algorithm>
#include <memory>
#include <span>

namespace rw::http {

/// Whether this process may still change the upstream's state; k8s::fence is one. A client asks it
/// each time that it is about to hand bytes of such a request to the socket, so that what was
/// queued while the permit was open does not go out when it is no more.
class send_permit {
 public:
  virtual bool open() const noexcept = 0;

 protected:
  ~send_permit() = default;
};

inline bool all_open(std::span<const std::shared_ptr<const send_permit>> permits) noexcept {
  return std::ranges::all_of(permits, [](const auto& permit) { return permit->open(); });
}

}  // namespace rw::http
