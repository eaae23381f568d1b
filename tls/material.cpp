#include "rw/tls/material.hpp"

#include "rw/tls/context.hpp"
#include "rw/tls/digest.hpp"
#include "rw/tls/files.hpp"
#include "rw/tls/openssl.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>

namespace rw::tls {
namespace {

/// Refuses to read a passphrase: a service has no terminal.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

result<pkey_ptr> read_key(std::string_view text, const std::string& name) {
  const auto bio = read_bio(text);
  if (!bio) return failure(error::out_of_memory);
  bool encrypted = false;
  const key_reading wiping;
  pkey_ptr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, &encrypted));
  ERR_clear_error();
  if (key) return key;
  const auto code = encrypted ? error::encrypted_key : error::malformed_key;
  return failure(code, name + ": " + make_error_code(code).message());
}

failure named(const std::string& name, failure f) {
  f.detail = name + ": " + f.message();
  return f;
}

}  // namespace

std::string material_text::digest() const {
  sha256_stream all;
  for (const std::string_view part :
       {std::string_view(certificate), std::string_view(key), std::string_view(ca)}) {
    all.add(std::to_string(part.size())).add(":").add(part);
  }
  const auto sum = all.finish();
  return {sum.begin(), sum.end()};
}

result<material_text> read_text(const material_files& files) {
  material_text text;
  const auto read = [](const std::string& name, auto&& from, auto& to) -> result<void> {
    if (name.empty()) return {};
    auto found = from(name);
    if (!found) return found.error();
    // An empty file must not count as a part that is not configured.
    if (found->empty()) return failure(error::not_pem, name + ": file is empty");
    to = std::move(*found);
    return {};
  };
  if (auto done = read(files.certificate, read_file, text.certificate); !done) return done.error();
  if (auto done = read(files.key, read_key_file, text.key); !done) return done.error();
  if (auto done = read(files.ca, read_file, text.ca); !done) return done.error();
  return text;
}

result<material> material::load(const material_files& files) {
  const auto text = read_text(files);
  if (!text) return text.error();
  return from_text(*text, files);
}

result<material> material::from_text(const material_text& text, const material_files& names) {
  const auto called = [](const std::string& name, const char* otherwise) {
    return name.empty() ? std::string(otherwise) : name;
  };
  const auto certificate_name = called(names.certificate, "certificate");
  const auto key_name = called(names.key, "key");
  if (text.certificate.empty() != text.key.empty()) {
    return failure(error::missing_material,
                   text.key.empty() ? certificate_name + ": its private key is not configured"
                                    : key_name + ": its certificate is not configured");
  }
  material out;
  out.digest_ = text.digest();
  if (!text.certificate.empty()) {
    auto chain = load_pem_bundle(text.certificate);
    if (!chain) return named(certificate_name, chain.error());
    out.leaf_ = chain->front();
    out.chain_.assign(chain->begin() + 1, chain->end());
    auto key = read_key(text.key, key_name);
    if (!key) return key.error();
    out.key_ = std::move(*key);
    const bool match = X509_check_private_key(out.leaf_->native(), out.key_.get()) == 1;
    ERR_clear_error();
    if (!match) {
      return failure(error::key_mismatch, key_name + ": does not belong to the certificate in " +
                                              certificate_name + " (" + out.leaf_->subject() + ")");
    }
    if (auto usable = check_usable(out); !usable) return named(certificate_name, usable.error());
  }
  if (!text.ca.empty()) {
    auto ca = trust_store::from_pem(text.ca);
    if (!ca) return named(called(names.ca, "CA bundle"), ca.error());
    out.ca_ = std::move(*ca);
  }
  if (!out.leaf_ && !out.ca_) {
    return failure(error::missing_material, "neither a certificate nor a CA bundle is configured");
  }
  return out;
}

material material::none() {
  material out;
  out.digest_ = material_text().digest();
  return out;
}

credentials::credentials(material first)
    : current_(std::make_shared<const material>(std::move(first))) {}

result<std::shared_ptr<credentials>> credentials::load(const material_files& files) {
  auto first = material::load(files);
  if (!first) return first.error();
  return std::make_shared<credentials>(std::move(*first));
}

result<std::shared_ptr<credentials>> credentials::from_text(const material_text& text) {
  auto first = material::from_text(text);
  if (!first) return first.error();
  return std::make_shared<credentials>(std::move(*first));
}

std::shared_ptr<const material> credentials::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

std::pair<std::shared_ptr<const material>, std::uint64_t> credentials::snapshot() const {
  const std::lock_guard lock(mutex_);
  return {current_, generation_.load(std::memory_order_relaxed)};
}

void credentials::replace(material next) {
  auto made = std::make_shared<const material>(std::move(next));
  const std::lock_guard lock(mutex_);
  current_.swap(made);
  generation_.fetch_add(1, std::memory_order_release);
}

}  // namespace rw::tls
