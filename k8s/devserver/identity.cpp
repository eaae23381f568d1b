#include "rw/k8s/devserver/identity.hpp"

#include "rw/k8s/devserver/object_meta.hpp"
#include "rw/k8s/devserver/refusals.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/tls/certificate.hpp"

#include <boost/json/serialize.hpp>
#include <openssl/x509.h>

#include <algorithm>
#include <array>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::string_view masters = "system:masters";
constexpr std::string_view authenticated = "system:authenticated";
constexpr std::size_t most_issued = 100'000;  // valid tokens of ServiceAccounts

/// RFC 4648, section 5, without padding.
std::string base64_url(std::string_view bytes) {
  auto text = base64_encode(bytes);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return text;
}

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
  identity user{certificate->common_name(), organizations(*certificate)};
  user.groups.emplace_back(authenticated);
  return user;
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

void identities::add_token(std::string_view cluster, std::string token, std::string_view user,
                           std::vector<std::string> groups) {
  owner of{std::string(cluster), std::string(user)};
  of.groups = std::move(groups);
  tokens_.insert_or_assign(std::move(token), std::move(of));
}

void identities::forget(std::string_view cluster) {
  std::erase_if(tokens_, [&](const auto& token) {
    if (token.second.cluster != cluster) return false;
    if (!token.second.credential.empty()) --issued_;
    return true;
  });
}

outcome<std::string> identities::issue(std::string_view cluster, account of,
                                       const json::value& audiences, time_point now,
                                       time_point end) {
  if (issued_ >= most_issued) {
    issued_ -= std::erase_if(tokens_, [&](const auto& token) { return token.second.end <= now; });
  }
  if (issued_ >= most_issued) return too_many_requests();
  const auto seconds = [](time_point at) {
    return std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count();
  };
  const auto id = make_uid(random_);
  const auto user = "system:serviceaccount:" + of.ns + ":" + of.name;
  const json::value claims{
      {"aud", audiences},
      {"exp", seconds(end)},
      {"iat", seconds(now)},
      {"iss", "https://kubernetes.default.svc"},
      {"jti", id},
      {"kubernetes.io",
       {{"namespace", of.ns}, {"serviceaccount", {{"name", of.name}, {"uid", of.uid}}}}},
      {"nbf", seconds(now)},
      {"sub", user}};
  std::string signature;
  for (int i = 0; i < 32; ++i) signature += static_cast<char>(random_() & 0xFF);
  auto token = base64_url(R"({"alg":"none","typ":"JWT"})") + "." +
               base64_url(json::serialize(claims)) + "." + base64_url(signature);
  tokens_[token] = {std::string(cluster), user, std::move(of), id, end};
  ++issued_;
  return token;
}

outcome<identity> identities::identify_token(std::string_view token, std::string_view cluster,
                                             time_point now) const {
  const auto at = tokens_.find(std::string(token));
  if (at == tokens_.end() || at->second.cluster != cluster || at->second.end <= now) {
    return unauthorized();
  }
  const auto& of = at->second;
  auto groups = of.groups;
  std::ranges::move(groups_of(of.user), std::back_inserter(groups));
  return identity{of.user, std::move(groups), of.credential, {of.of.ns, of.of.name}, of.of.uid};
}

std::vector<std::string> identities::groups_of(std::string_view user) {
  std::vector<std::string> groups;
  if (user == "admin") groups.emplace_back(masters);
  constexpr std::string_view accounts = "system:serviceaccount:";
  if (user.starts_with(accounts)) {
    const auto rest = user.substr(accounts.size());
    groups.emplace_back("system:serviceaccounts");
    groups.emplace_back("system:serviceaccounts:" + std::string(rest.substr(0, rest.find(':'))));
  }
  groups.emplace_back(authenticated);
  return groups;
}

outcome<identity> identities::authenticate(const http::request& from, std::string_view cluster,
                                           time_point now) const {
  constexpr std::string_view bearer = "bearer ";
  const auto given = from.headers.get("authorization");
  if (given.size() > bearer.size() && http::iequals(given.substr(0, bearer.size()), bearer)) {
    return identify_token(given.substr(bearer.size()), cluster, now);
  }
  if (from.peer.certificate.empty()) return unauthorized();
  return from_certificate(from.peer.certificate);
}

outcome<identity> identities::identify(const http::request& from, std::string_view cluster,
                                       time_point now) const {
  auto user = authenticate(from, cluster, now);
  const auto as = from.headers.get("impersonate-user");
  if (user.has_error() || as.empty()) return user;
  if (!user->in(masters)) {
    return forbidden({"", "users", as}, "User \"" + user->user +
                                            "\" cannot impersonate resource \"users\" in API group "
                                            "\"\" at the cluster scope");
  }
  identity other{std::string(as), {}};
  for (std::size_t i = 0; i < from.headers.size(); ++i) {
    const auto field = from.headers[i];
    if (http::iequals(field.name, "impersonate-group")) other.groups.emplace_back(field.value);
  }
  // A ServiceAccount has its own groups, unless others are given.
  if (other.groups.empty() && as.starts_with("system:serviceaccount:")) {
    other.groups = groups_of(as);
  } else {
    other.groups.emplace_back(authenticated);
  }
  return other;
}

}  // namespace rw::k8s::devserver
