// The sources of a runtime's configuration, which people write: a document is valid, or its errors
// begin with its name.

#include "rw/reactors/bootstrapper/validation.hpp"

#include <boost/json/object.hpp>

#include "tests/fuzz/check.hpp"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace rw::bootstrapper;
using rw::fuzz::check;

bool all_begin_with(const diagnostics& found, std::string_view name) {
  const auto named = [name](const std::string& text) { return text.starts_with(name); };
  return std::ranges::all_of(found.errors, named) && std::ranges::all_of(found.warnings, named);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  diagnostics of_configuration;
  const auto read = validate_configuration(text, {.landscape = true},
                                           field_path(of_configuration, "configuration"));
  check(all_begin_with(of_configuration, "configuration"), "each finding names its document");
  if (of_configuration.errors.empty()) {
    for (const auto& feature : read.features) {
      check(std::ranges::count(default_features(), feature) > 0, "only known features are taken");
    }
  }

  diagnostics of_secret;
  validate_pull_secret(
      boost::json::object{{"type", pull_secret_type}, {"data", {{pull_secret_key, text}}}},
      field_path(of_secret, "secret"));
  check(all_begin_with(of_secret, "secret"), "each finding names its document");

  diagnostics of_bundle;
  validate_trust_bundle(boost::json::object{{"spec", {{"trustBundle", text}}}}, {},
                        field_path(of_bundle, "bundle"));
  check(all_begin_with(of_bundle, "bundle"), "each finding names its document");
  return 0;
}
