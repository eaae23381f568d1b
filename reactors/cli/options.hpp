#pragma once

#include "rw/reactors/cli/settings.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <initializer_list>
#include <string>

namespace rw::cli {

using validator = CLI::Validator;

/// Collects the errors of the settings, to report all at once.
class problems {
 public:
  void add(const std::string& error) { text_ += (text_.empty() ? "" : "\n") + error; }
  /// Throws `setting_error` if there is an error.
  void raise() const {
    if (!text_.empty()) throw setting_error(text_);
  }

 private:
  std::string text_;
};

/// Adds an option whose help shows `type`, if given, and the default in `value`. A list's elements
/// are separated by commas.
template <typename T>
CLI::Option* add(CLI::App& app, const std::string& flag, T& value, const std::string& type,
                 const std::string& help) {
  auto* option = app.add_option(flag, value, help);
  if (!type.empty()) option->type_name(type);
  if constexpr (requires { value.push_back(std::string()); }) {
    option->delimiter(',');
    if (value.empty()) return option;
  }
  return option->capture_default_str();
}

/// Adds an option for a duration of `least` at least, such as 250ms or 1h.
CLI::Option* add_duration(CLI::App& app, const std::string& flag, std::chrono::milliseconds& value,
                          const std::string& help, std::chrono::milliseconds least = {});

CLI::Validator ip_address();
CLI::Validator endpoint();  ///< an IP address and a port

/// Adds an option for an endpoint to listen on; port 0 picks a free one.
CLI::Option* add_listening_address(CLI::App& app, const std::string& flag, core::host_port& value,
                                   const std::string& help);

/// Restricts options to names of Kubernetes objects: DNS subdomains (RFC 1123). `or_none`: an empty
/// value is one, too.
void check_object_names(CLI::App& app, std::initializer_list<const char*> flags,
                        bool or_none = false);

/// Adds an error for each of these options that is missing. Called after parsing.
void check_required(CLI::App& app, std::initializer_list<const char*> flags, problems& wrong);

/// Adds the options of `listening_settings`, except the address.
void describe_listening(CLI::App& app, listening_settings& to);
void check_listening(const listening_settings& of, problems& wrong);

/// `to` is a core::host_port, or an optional one.
template <class Address>
CLI::Option* add_host_port(CLI::App& app, const std::string& flag, Address& to,
                           const std::string& help) {
  const auto set = [&to, flag](const std::string& text) {
    const auto read = core::parse_host_port(text);
    if (!read)
      throw CLI::ValidationError(flag.substr(0, flag.find(',')) +
                                 " must be HOST:PORT, not: " + text);
    to = *read;
  };
  return app.add_option_function<std::string>(flag, set, help)->type_name("HOST:PORT");
}

/// Adds --kubeconfig and --context of KCP.
void add_kubeconfig(CLI::App& app, kcp_access& to);
/// Whether runtimes may be on this machine.
void add_local_runtimes(CLI::App& app, k8s::local_servers& to);
/// Whether Certificates are Gardener's.
void add_certificates_kind(CLI::App& app, bool& gardener);
void add_bootstrapper_mode(CLI::App& app, bootstrapper_mode& value, const std::string& help);
/// Shows the options added after the first `first` ones under a heading of their own.
void group_options(CLI::App& app, std::size_t first, const std::string& group);

void describe_runtime_config(CLI::App& app, runtime_config_settings& to);

}  // namespace rw::cli
