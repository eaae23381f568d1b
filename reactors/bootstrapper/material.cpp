#include "reactors/bootstrapper/material.hpp"

#include "k8s/base64.hpp"
#include "k8s/types.hpp"
#include "tls/certificate.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;

bool has_text(const json::value& in, std::string_view name) {
  return !k8s::find_string(in, {name}).empty();
}

void check_entry(const json::value& entry, findings wrong) {
  if (!entry.is_object()) return wrong.add("is no JSON object");
  const auto auth = k8s::find_string(entry, {"auth"});
  if (!auth.empty()) {
    const auto plain = k8s::base64_decode(auth);
    const bool good = plain && plain->find(':') != plain->npos && !plain->starts_with(':');
    if (!good) wrong.add("auth", "is not base64 of user:password");
    return;
  }
  const bool named = has_text(entry, "username") && has_text(entry, "password");
  const bool token = has_text(entry, "identitytoken") || has_text(entry, "registrytoken");
  if (!named && !token) wrong.add("has no credentials");
}

}  // namespace

void check_pull_secret(const json::value& secret, findings wrong) {
  const auto type = k8s::find_string(secret, {"type"});
  if (type != pull_secret_type) {
    wrong.add("type", "is \"" + std::string(type) + "\" and not " + std::string(pull_secret_type));
  }
  const auto text = k8s::secret_data(secret, pull_secret_key);
  auto here = wrong.at("data[" + std::string(pull_secret_key) + "]");
  if (!text) return here.add("is missing or not base64");
  const auto config = parse_json(*text, here);
  if (!config) return;
  const auto* const auths = k8s::find(*config, {"auths"});
  auto all = here.at("auths");
  if (auths == nullptr || !auths->is_object()) return all.add("is missing or no JSON object");
  if (auths->get_object().empty()) all.add("has no registry");
  for (const auto& [registry, entry] : auths->get_object()) {
    if (registry.empty()) all.add("has a registry without a name");
    check_entry(entry, all.at(std::string(registry)));
  }
}

void check_trust_bundle(const json::value& bundle, std::chrono::system_clock::time_point now,
                        findings wrong) {
  const std::string pem(k8s::find_string(bundle, {"spec", "trustBundle"}));
  auto here = wrong.at("spec.trustBundle");
  if (pem.empty()) return here.add("is missing or empty");
  constexpr std::string_view begin = "-----BEGIN ";
  std::size_t number = 0;
  for (auto at = pem.find(begin); at != pem.npos; at = pem.find(begin, at + 1)) {
    ++number;
    if (std::string_view(pem).substr(at + begin.size()).starts_with("CERTIFICATE-----")) continue;
    return here.add("PEM block " + std::to_string(number) + " is no CERTIFICATE");
  }
  const auto all = tls::load_pem_bundle(pem);
  if (!all) return here.add(all.error().message());
  std::vector<std::string> seen;
  number = 0;
  for (const auto& one : *all) {
    const auto who = "certificate " + std::to_string(++number) + " (" + one.subject() + ") ";
    if (!one.is_ca()) here.add(who + "is no CA's");
    if (one.not_after() < now) here.add(who + "expired on " + k8s::format_time(one.not_after()));
    if (std::ranges::find(seen, one.fingerprint()) != seen.end()) here.add(who + "is there twice");
    seen.push_back(one.fingerprint());
  }
}

}  // namespace rw::bootstrapper
