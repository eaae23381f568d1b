#include "rw/reactors/intake/identity.hpp"

#include "rw/core/text.hpp"
#include "rw/reactors/shared/most_runtimes.hpp"
#include "rw/tls/digest.hpp"
#include "rw/tls/xfcc.hpp"

#include <openssl/x509_vfy.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace rw::listener {
namespace {

namespace asio = boost::asio;

constexpr std::string_view xfcc_header = "x-forwarded-client-cert";

/// Returns the header's lines joined, as one line of the proxies (RFC 9110, section 5.3).
std::string forwarded(const http::fields& headers) {
  std::string joined;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const auto field = headers[i];
    if (!http::iequals(field.name, xfcc_header)) continue;
    if (!joined.empty()) joined += ',';
    joined += field.value;
  }
  return joined;
}

identity_error error_of(const boost::system::error_code& of_header) {
  if (of_header == tls::xfcc_error::missing) return identity_error::no_header;
  if (of_header == tls::xfcc_error::no_certificate) return identity_error::no_certificate;
  if (of_header == tls::xfcc_error::several_certificates) {
    return identity_error::several_certificates;
  }
  return identity_error::malformed_header;
}

/// Returns the network of an address, IPv4 ones mapped.
asio::ip::network_v6 network(const asio::ip::address& address, unsigned short bits) {
  const auto mapped = address.is_v6()
                          ? address.to_v6()
                          : asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4());
  return asio::ip::network_v6(mapped, bits).canonical();
}

}  // namespace

std::string_view reason(identity_error error) noexcept {
  switch (error) {
    case identity_error::untrusted_peer:
      return "the peer is not in --xfcc-trusted-proxies, so its X-Forwarded-Client-Cert is not "
             "believed";
    case identity_error::no_header:
      return "the request has no X-Forwarded-Client-Cert";
    case identity_error::malformed_header:
      return "X-Forwarded-Client-Cert cannot be read";
    case identity_error::no_certificate:
      return "the request names no client certificate";
    case identity_error::several_certificates:
      return "X-Forwarded-Client-Cert has more than one Cert, and may be forged";
    case identity_error::unreadable:
      return "the client certificate cannot be read";
    case identity_error::untrusted:
      return "the client certificate is not trusted";
    case identity_error::nameless:
      return "the client certificate has no common name";
    case identity_error::outdated:
      return "the client certificate was checked before the CA changed";
  }
  return "unknown error";
}

std::string_view label(identity_error error) noexcept {
  switch (error) {
    case identity_error::untrusted_peer:
      return "untrusted_peer";
    case identity_error::no_header:
      return "no_header";
    case identity_error::malformed_header:
      return "malformed_header";
    case identity_error::no_certificate:
      return "no_certificate";
    case identity_error::several_certificates:
      return "several_certificates";
    case identity_error::unreadable:
      return "unreadable";
    case identity_error::untrusted:
      return "untrusted";
    case identity_error::nameless:
      return "nameless";
    case identity_error::outdated:
      return "outdated";
  }
  return "unknown";
}

network_list network_list::parse(std::string_view text) {
  network_list result;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string part(core::trimmed(text.substr(0, comma)));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (part.empty()) continue;
    const auto slash = std::min(part.find('/'), part.size());
    boost::system::error_code error;
    const auto address = asio::ip::make_address(part.substr(0, slash), error);
    const int all = address.is_v4() ? 32 : 128;
    int bits = all;
    const auto* const end = part.data() + part.size();
    const bool valid =
        slash == part.size() || std::from_chars(part.data() + slash + 1, end, bits).ptr == end;
    if (error || !valid || bits < 0 || bits > all || part.ends_with('/')) {
      throw std::invalid_argument("not a network such as 10.0.0.0/8 or fd00::/8: " + part);
    }
    result.networks_.push_back(network(address, static_cast<unsigned short>(128 - all + bits)));
  }
  return result;
}

bool network_list::contains(const asio::ip::address& address) const {
  const bool is_v4 = network(address, 128).address().is_v4_mapped();
  return std::ranges::any_of(networks_, [&](const asio::ip::network_v6& listed) {
    const bool of_v4 = listed.address().is_v4_mapped();
    return of_v4 == is_v4 && network(address, listed.prefix_length()) == listed;
  });
}

identifier::identifier(identity_options options, core::clock& time)
    : options_(std::move(options)),
      clock_(time),
      known_(most_runtimes),
      connected_since_(generation()) {}

sender_result identifier::identify(const http::request& from) {
  std::string evidence;
  if (options_.terminates_tls) {
    evidence = from.peer.certificate;
  } else {
    if (!options_.trusted_proxies.contains(from.peer.address.address())) {
      return identity_error::untrusted_peer;
    }
    evidence = forwarded(from.headers);
  }
  if (evidence.empty()) {
    return options_.terminates_tls ? identity_error::no_certificate : identity_error::no_header;
  }
  const auto current = generation();
  const auto digest = tls::sha256(evidence);  // so that a long header does not stay in memory
  const std::string key(digest.begin(), digest.end());
  {
    const std::lock_guard lock(guard_);
    const auto* found = known_.find(key);
    if (found != nullptr && found->generation == current && clock_.wall() <= found->until) {
      return known_.use(key).peer;
    }
  }
  auto examined = examine(evidence);
  if (examined.has_error()) return examined.error();
  const std::lock_guard lock(guard_);
  return (known_.use(key) = std::move(*examined)).peer;
}

boost::system::result<identifier::entry, identity_error> identifier::examine(
    const std::string& evidence) const {
  std::vector<tls::certificate> intermediates;
  std::optional<tls::certificate> leaf;
  if (options_.terminates_tls) {
    if (auto parsed = tls::certificate::from_der(evidence)) leaf = std::move(*parsed);
  } else {
    const auto client = tls::parse_xfcc(evidence);
    if (!client) return error_of(client.error());
    if (auto parsed = client->client_certificate()) leaf = std::move(*parsed);
    if (auto more = client->intermediates()) intermediates = std::move(*more);
  }
  if (!leaf) return identity_error::unreadable;
  const auto now = clock_.wall();
  if (!leaf->valid_at(now)) return identity_error::untrusted;
  entry made{.peer = {}, .until = leaf->not_after()};
  if (options_.client_ca) {
    const auto [trust, generation] = options_.client_ca->snapshot();
    made.generation = generation;
    const auto chained = chains(*leaf, intermediates, *trust);
    if (chained.has_error()) {
      const auto& code = chained.error().code;
      const bool lacks_issuer = code.category() == tls::verify_category() &&
                                (code.value() == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
                                 code.value() == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
      if (!options_.terminates_tls || !lacks_issuer) return identity_error::untrusted;
      // The handshake received intermediates, which are not available here. It used this very
      // material, unless the connection is older.
      if (connected_since_ != generation) return identity_error::outdated;
    }
    if (trust->ca()) {
      intermediates.insert(intermediates.end(), trust->ca()->anchors().begin(),
                           trust->ca()->anchors().end());
    }
  }
  for (const auto& issuer : intermediates) {
    if (issuer.valid_at(now)) made.until = std::min(made.until, issuer.not_after());
  }
  if (leaf->common_name().empty()) return identity_error::nameless;
  auto id = leaf->common_name();
  made.peer = std::make_shared<const event_sender>(event_sender{std::move(id), std::move(*leaf)});
  return made;
}

tls::result<void> identifier::chains(const tls::certificate& leaf,
                                     const std::vector<tls::certificate>& intermediates,
                                     const tls::material& trust) const {
  if (trust.ca()) {
    return trust.ca()->verify(leaf, intermediates, tls::purpose::client_auth, clock_.wall());
  }
  if (!options_.terminates_tls) return {};
  return tls::failure(boost::system::error_code(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
                                                tls::verify_category()));
}

}  // namespace rw::listener
