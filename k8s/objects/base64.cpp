#include "rw/k8s/objects/base64.hpp"

#include <openssl/evp.h>

#include <algorithm>

namespace rw::k8s {
namespace {

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  // EVP_EncodeBlock writes a zero after the text.
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes_of(bytes),
                  static_cast<int>(bytes.size()));
  out.pop_back();
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string dense(text);
  std::erase_if(dense, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
  const auto end = std::min(dense.find('='), dense.size());
  const auto padding = dense.size() - end;
  const bool padded = padding <= 2 && dense.find_first_not_of('=', end) == std::string::npos;
  if (dense.size() % 4 != 0 || !padded) return std::nullopt;
  std::string out(dense.size() / 4 * 3, '\0');
  // EVP_DecodeBlock reads padding as zeros, and ends before certain other characters.
  const auto written = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                       bytes_of(dense), static_cast<int>(dense.size()));
  if (written != static_cast<int>(out.size())) return std::nullopt;
  out.resize(out.size() - padding);
  return out;
}

}  // namespace rw::k8s
