// YAML from ConfigMaps and Secrets: manifests mean the same once they are written as JSON, and a
// kubeconfig from elsewhere never makes this process run a program or read a file.

#include "rw/k8s/config/config.hpp"
#include "rw/k8s/objects/difference.hpp"
#include "rw/k8s/objects/manifests.hpp"

#include <boost/json/serialize.hpp>

#include "tests/fuzz/check.hpp"
#include <cstddef>
#include <cstdint>
#include <string>

namespace {

using rw::fuzz::check;

void check_object(const boost::json::value& object) {
  check(object.is_object(), "a manifest is an object");
  check(!rw::k8s::find_difference(object, object), "nothing differs from itself");
  // JSON is YAML; but a long key may not be one.
  const auto again = rw::k8s::parse_manifests(boost::json::serialize(object));
  check(!again || (again->size() == 1 && again->front() == object), "JSON means the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto read = rw::k8s::parse_manifests(text, {.bytes = 1u << 16, .values = 10'000})) {
    for (const auto& one : *read) check_object(one);
  }
  const auto config = rw::k8s::parse_foreign_kubeconfig(text, "fuzzed");
  if (!config) return 0;
  check(!config->exec, "no program is run");
  check(config->refuse_local && config->server.starts_with("https"),
        "no server on this machine is asked");
  check(config->ca_file.empty() && config->client_certificate_file.empty() &&
            config->client_key_file.empty() && config->token_file.empty(),
        "no file is read");
  return 0;
}
