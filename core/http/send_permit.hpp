#pragma once

namespace rw::http {

/// Whether this process may still change the upstream's state; k8s::fence is one. A client asks it
/// each time that it is about to hand bytes of a guarded request to the socket, so that what was
/// queued while the permit was open does not go out when it is no more.
class send_permit {
 public:
  virtual bool open() const noexcept = 0;

 protected:
  ~send_permit() = default;
};

}  // namespace rw::http
