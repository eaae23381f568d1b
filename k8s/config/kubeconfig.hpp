#pragma once

#include "rw/k8s/config/config.hpp"
#include "rw/k8s/objects/failure.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace rw::k8s {

/// A failure of the configuration: errc::not_configured.
inline failure not_configured(std::string message) {
  return {.code = errc::not_configured, .message = std::move(message)};
}

/// Origin of the text: a foreign text must not run programs or read files here.
enum class kubeconfig_trust : std::uint8_t { own, foreign };

/// Merges kubeconfigs: the caller adds texts in the order of precedence, then looks a context up in
/// all of them.
class kubeconfig_set {
 public:
  explicit kubeconfig_set(kubeconfig_trust trust = kubeconfig_trust::own);
  ~kubeconfig_set();
  kubeconfig_set(const kubeconfig_set&) = delete;
  kubeconfig_set& operator=(const kubeconfig_set&) = delete;

  /// Messages call the text `name`.
  result<void> add(const std::string& text, const std::string& name, const std::string& directory);

  result<config> find(const std::string& context) const;

 private:
  struct entries;
  const std::unique_ptr<entries> entries_;
  const kubeconfig_trust trust_;
};

}  // namespace rw::k8s
