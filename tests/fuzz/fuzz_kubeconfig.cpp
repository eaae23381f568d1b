// A runtime's kubeconfig, which its owner may have written: it is taken or refused with a reason,
// and what is taken neither runs programs nor reads files here.

#include "rw/k8s/config/kubeconfig.hpp"

#include "tests/fuzz/check.hpp"
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using rw::fuzz::check;
  const std::string text(reinterpret_cast<const char*>(data), size);
  rw::k8s::kubeconfig_set foreign(rw::k8s::kubeconfig_trust::foreign);
  const auto added = foreign.add(text, "runtime-1", {});
  if (!added) {
    check(!added.error().message.empty(), "a refusal says why");
    return 0;
  }
  const auto found = foreign.find({});
  check(found || !found.error().message.empty(), "a refusal says why");
  return 0;
}
