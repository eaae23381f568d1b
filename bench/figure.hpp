/// One line of JSON for each figure, as all benchmarks print them and gather.py reads them:
/// README.md, "Lines".
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace rw::bench {

/// A figure of one round. A number that is zero, but for the value, is not there.
struct figure {
  std::string name;
  double value = 0;
  std::string unit;
  std::string peer = {};   ///< what it is compared with
  double peer_value = 0;   ///< of the peer in the same run and unit
  double limit = 0;        ///< the value is at most this
  double at_least = 0;     ///< the value is at least this
  double ratio_limit = 0;  ///< value / peer_value is at most this
};

/// Prints the line; false if a limit is missed. Texts are without quotes and backslashes.
inline bool print(const figure& of) {
  std::string line = R"({"name":")" + of.name + '"';
  const auto add_number = [&line](const char* key, double value) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), ",\"%s\":%.6g", key, value);
    line += text.data();
  };
  add_number("value", of.value);
  line += R"(,"unit":")" + of.unit + '"';
  if (!of.peer.empty()) line += R"(,"peer":")" + of.peer + '"';
  const double ratio = of.peer_value != 0 ? of.value / of.peer_value : 0;
  if (of.peer_value != 0) {
    add_number("peer_value", of.peer_value);
    add_number("ratio", ratio);
  }
  if (of.limit != 0) add_number("limit", of.limit);
  if (of.at_least != 0) add_number("at_least", of.at_least);
  if (of.ratio_limit != 0) add_number("ratio_limit", of.ratio_limit);
  std::printf("%s}\n", line.c_str());
  std::fflush(stdout);
  return (of.limit == 0 || of.value <= of.limit) && of.value >= of.at_least &&
         (of.ratio_limit == 0 || ratio <= of.ratio_limit);
}

}  // namespace rw::bench
