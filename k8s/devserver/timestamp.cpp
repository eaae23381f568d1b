#include "k8s/devserver/timestamp.hpp"

#include <array>
#include <cstdio>
#include <ctime>

namespace rw::k8s::devserver {

std::string timestamp(std::chrono::system_clock::time_point when) {
  const auto seconds = std::chrono::system_clock::to_time_t(when);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const auto size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

std::chrono::system_clock::time_point parse_timestamp(const std::string& text) {
  std::tm parts{};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return {};
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

}  // namespace rw::k8s::devserver
