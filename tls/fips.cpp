#include "rw/tls/fips.hpp"

#include <openssl/evp.h>
#include <openssl/provider.h>

#include <algorithm>
#include <vector>

namespace rw::tls {

fips_mode decide_fips_mode(bool fips_by_default, std::span<const std::string> providers) {
  const bool has_fips = std::ranges::find(providers, "fips") != providers.end();
  const bool has_others = std::ranges::any_of(providers, [](const std::string& name) {
    return name != "fips" && name != "base" && name != "null";
  });
  if (has_fips && !has_others) return fips_mode::only;
  return fips_by_default ? fips_mode::on : fips_mode::off;
}

fips_mode current_fips_mode() {
  std::vector<std::string> names;
  const auto add = [](OSSL_PROVIDER* provider, void* to) {
    static_cast<std::vector<std::string>*>(to)->emplace_back(OSSL_PROVIDER_get0_name(provider));
    return 1;
  };
  OSSL_PROVIDER_do_all(nullptr, add, &names);
  return decide_fips_mode(EVP_default_properties_is_fips_enabled(nullptr) == 1, names);
}

}  // namespace rw::tls
