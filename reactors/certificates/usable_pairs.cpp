#include "rw/reactors/certificates/usable_pairs.hpp"

#include "rw/tls/material.hpp"

namespace rw::certificates {

tls::result<tls::certificate> usable_pairs::read(const tls::key_pair& pair) {
  const tls::material_text text{.certificate = pair.certificate, .key = pair.key, .ca = {}};
  const auto digest = text.digest();
  if (known_.find(digest) != nullptr) {
    known_.use(digest);
    if (auto leaf = tls::certificate::from_pem(pair.certificate)) return std::move(*leaf);
  }
  const auto read =
      tls::material::from_text(text, {.certificate = "tls.crt", .key = "tls.key", .ca = {}});
  if (!read) return read.error();
  known_.use(digest);
  return *read->leaf();
}

}  // namespace rw::certificates
