#include "reactors/bootstrapper/diagnostics.hpp"

#include "k8s/object.hpp"

#include <boost/json/parser.hpp>

#include <algorithm>

namespace rw::bootstrapper {

std::string describe(const std::vector<diagnostic>& all, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i) {
    out += (i == 0 ? "" : "; ") + all[i].message();
  }
  if (all.size() > most) out += "; and " + std::to_string(all.size() - most) + " more";
  return out;
}

std::optional<boost::json::value> parse_json(std::string_view text, const field_path& path) {
  boost::json::parse_options options;
  options.max_depth = k8s::max_object_depth;
  boost::json::parser parser({}, options);
  boost::system::error_code error;
  const auto read = parser.write_some(text.data(), text.size(), error);
  const bool complete = !error && text.find_first_not_of(" \t\r\n", read) == std::string_view::npos;
  if (complete) return parser.release();
  path.error("is no JSON, from byte " + std::to_string(read + 1) + " on" +
             (error ? " (" + error.message() + ")" : std::string()));
  return std::nullopt;
}

}  // namespace rw::bootstrapper
