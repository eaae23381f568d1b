#pragma once

#include <boost/json/value.hpp>

#include <string>

namespace rw::cli {

/// Formats JSON as a YAML document in block style, as kubectl's `-o yaml`: YAML readers get the
/// same value of it.
std::string yaml_text(const boost::json::value& of);

}  // namespace rw::cli
