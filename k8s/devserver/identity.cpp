#include "rw/k8s/devserver/identity.hpp"

#include "rw/k8s/devserver/refusals.hpp"
#include "rw/tls/certificate.hpp"

#include <openssl/x509.h>

#include <algorithm>
#include <array>

namespace rw::k8s::devserver {
namespace {

constexpr std::string_view masters = "system:masters";
constexpr std::string_view authenticated = "system:authenticated";

std::vector<std::string> organizations(const tls::certificate& of) {
  std::vector<std::string> result;
  const auto* subject = X509_get_subject_name(of.native());
  for (int at = -1;;) {
    at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at);
    if (at < 0) return result;
    const auto* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    unsigned char* utf8 = nullptr;
    const int size = ASN1_STRING_to_UTF8(&utf8, text);
    if (size < 0) continue;
    result.emplace_back(utf8, utf8 + size);
    OPENSSL_free(utf8);
  }
}

outcome<identity> from_certificate(std::string_view der) {
  const auto certificate = tls::certificate::from_der(der);
  if (certificate.has_error() || certificate->common_name().empty()) return unauthorized();
  identity who{certificate->common_name(), organizations(*certificate)};
  who.groups.emplace_back(authenticated);
  return who;
}

}  // namespace

bool identity::in(std::string_view group) const noexcept {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

const std::string& identities::token(std::string_view cluster, std::string_view user) {
  for (const auto& [token, of] : tokens_) {
    if (of.cluster == cluster && of.user == user) return token;
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string token;
  for (int half = 0; half < 2; ++half) {
    auto bits = random_();
    for (int i = 0; i < 16; ++i, bits >>= 4) token += digits[bits & 15];
  }
  return tokens_.emplace(token, owner{std::string(cluster), std::string(user)}).first->first;
}

void identities::forget(std::string_view cluster) {
  std::erase_if(tokens_, [&](const auto& one) { return one.second.cluster == cluster; });
}

const std::string* identities::user_of(std::string_view token, std::string_view cluster) const {
  const auto at = tokens_.find(std::string(token));
  return at == tokens_.end() || at->second.cluster != cluster ? nullptr : &at->second.user;
}

std::vector<std::string> identities::groups_of(std::string_view user) {
  std::vector<std::string> groups;
  if (user == "admin") groups.emplace_back(masters);
  groups.emplace_back(authenticated);
  return groups;
}

outcome<identity> identities::authenticate(const http::request& from,
                                           std::string_view cluster) const {
  constexpr std::string_view bearer = "bearer ";
  const auto given = from.headers.get("authorization");
  if (given.size() > bearer.size() && http::iequals(given.substr(0, bearer.size()), bearer)) {
    const auto* user = user_of(given.substr(bearer.size()), cluster);
    if (user == nullptr) return unauthorized();
    return identity{*user, groups_of(*user)};
  }
  if (from.peer.certificate.empty()) return unauthorized();
  return from_certificate(from.peer.certificate);
}

outcome<identity> identities::identify(const http::request& from, std::string_view cluster) const {
  auto who = authenticate(from, cluster);
  const auto as = from.headers.get("impersonate-user");
  if (who.has_error() || as.empty()) return who;
  if (!who->in(masters)) {
    return forbidden({"", "users", as}, "User \"" + who->user +
                                            "\" cannot impersonate resource \"users\" in API group "
                                            "\"\" at the cluster scope");
  }
  identity other{std::string(as), {}};
  for (std::size_t i = 0; i < from.headers.size(); ++i) {
    const auto field = from.headers[i];
    if (http::iequals(field.name, "impersonate-group")) other.groups.emplace_back(field.value);
  }
  other.groups.emplace_back(authenticated);
  return other;
}

}  // namespace rw::k8s::devserver
