#pragma once

#include "reactors/cli/settings.hpp"

#include <chrono>
#include <initializer_list>
#include <string>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace rw::cli {

/// Collects what is wrong with the settings, so that all of it is said at once.
class problems {
 public:
  void add(const std::string& what) { text_ += (text_.empty() ? "" : "\n") + what; }
  /// Throws `setting_error` if something is.
  void raise() const {
    if (!text_.empty()) throw setting_error(text_);
  }

 private:
  std::string text_;
};

/// Adds an option for a duration, such as 250ms or 1h, of `least` at least; `shown` is the default
/// as help has it.
CLI::Option* add_duration(CLI::App* app, const std::string& flag, const std::string& variable,
                          std::chrono::milliseconds& value, const std::string& shown,
                          const std::string& help, std::chrono::milliseconds least = {});

CLI::Validator ip_address();
CLI::Validator endpoint();  ///< an IP address and a port

/// Adds an option for an endpoint to listen on; port 0 picks a free one.
CLI::Option* add_listening_address(CLI::App& app, const std::string& flag, core::host_port& value,
                                   const std::string& help);

/// Restricts options to names of Kubernetes objects: DNS subdomains (RFC 1123).
void check_object_names(CLI::App& app, std::initializer_list<const char*> flags);

/// Says which of these options were not given; to be called after parsing.
void check_required(CLI::App& app, std::initializer_list<const char*> flags, problems& wrong);

/// Adds the options of `listening_settings`, but for the address.
void describe_listening(CLI::App& app, listening_settings& to);
void check_listening(const listening_settings& of, problems& wrong);

void describe_manager(CLI::App& app, manager_settings& to);
void check_manager(manager_settings& to);

/// What dev's options are before they are checked together.
struct dev_texts {
  std::string events = "text";
  std::string bootstrapper = "off";
};

void describe_dev(CLI::App& app, dev_settings& to, dev_texts& texts);
void check_dev(dev_settings& to, const dev_texts& texts);

}  // namespace rw::cli
