#pragma once

#include "reactors/cli/settings.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
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

/// An option for a duration, such as 250ms or 1h; `shown` is the default as help has it.
CLI::Option* add_duration(CLI::App* app, const std::string& flag, const std::string& variable,
                          std::chrono::milliseconds& value, const std::string& shown,
                          const std::string& help);

/// What the manager's options are before they are checked together.
struct manager_texts {
  std::string address;
  std::string metrics_address;
  std::string dialect;
};

void describe_manager(CLI::App& app, manager_settings& to, manager_texts& texts);
void check_manager(manager_settings& to, const manager_texts& texts);

/// The same for dev.
struct dev_texts {
  std::string events = "text";
  std::string bootstrapper = "off";
  std::string metrics_address;
  std::vector<std::string> backends;
};

void describe_dev(CLI::App& app, dev_settings& to, dev_texts& texts);
void check_dev(dev_settings& to, const dev_texts& texts);

}  // namespace rw::cli
