#include "core/resolver.hpp"
#include "reactors/cli/api_server_app.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/cli/certs.hpp"
#include "reactors/cli/dev_app.hpp"
#include "reactors/cli/listen_app.hpp"
#include "reactors/cli/manager_app.hpp"
#include "reactors/cli/settings.hpp"
#include "reactors/cli/status_app.hpp"
#include "reactors/cli/uninstall_app.hpp"
#include "reactors/cli/webhook_app.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>

namespace {

namespace asio = boost::asio;
using namespace rw::cli;

std::unique_ptr<app> make_app(const settings& chosen, services& with) {
  switch (chosen.what) {
    case command::webhook:
      return std::make_unique<webhook_app>(with, chosen.webhook);
    case command::listen:
      return std::make_unique<listen_app>(with, chosen.listen);
    case command::manager:
      return std::make_unique<manager_app>(with, chosen.manager);
    case command::api_server:
      return std::make_unique<api_server_app>(with, chosen.api_server);
    case command::status:
      return std::make_unique<status_app>(with, chosen.status);
    case command::uninstall:
      return std::make_unique<uninstall_app>(with, chosen.uninstall);
    default:
      return std::make_unique<dev_app>(with, chosen.dev);
  }
}

/// SIGTERM and SIGINT end the app in order, a second one at once.
void stop_on_signal(asio::signal_set& signals, app& what) {
  signals.async_wait([&signals, &what](boost::system::error_code error, int) {
    if (error) return;
    what.stop();
    signals.async_wait([](boost::system::error_code again, int number) {
      if (!again) std::_Exit(128 + number);
    });
  });
}

/// Says why the process ends, and returns its exit code.
int tell(const std::exception_ptr& failure, const settings& chosen) {
  try {
    std::rethrow_exception(failure);
  } catch (const setting_error& e) {
    std::cerr << "runtime-watcher: " << chosen.as_given(e.what()) << '\n';
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "runtime-watcher: " << e.what() << '\n';
    return 1;
  }
}

int run(const settings& chosen) {
  std::signal(SIGPIPE, SIG_IGN);
  asio::io_context context(1);
  services with(context.get_executor(), chosen.log_level);
  const auto what = make_app(chosen, with);
  asio::signal_set signals(context, SIGTERM, SIGINT);
  stop_on_signal(signals, *what);
  std::optional<int> code;
  std::exception_ptr failure;
  asio::co_spawn(context, what->run(), [&](std::exception_ptr thrown, int result) {
    failure = thrown;
    code = result;
    signals.cancel();
  });
  while (!code) context.run_one();
  if (failure) code = tell(failure, chosen);
  // What is left may be a look-up of a name, which can't be ended and would hold up the exit.
  context.run_for(std::chrono::milliseconds(100));
  if (!context.stopped() || rw::core::resolver::of(context.get_executor()).busy()) {
    std::cout.flush();
    std::fflush(nullptr);
    std::_Exit(*code);
  }
  return *code;
}

}  // namespace

int main(int argc, char** argv) {
  settings chosen;
  try {
    chosen = read_settings(argc, argv);
    if (chosen.what == command::none) return 0;
    if (chosen.what == command::certs) {
      make_certificates(chosen.certs);
      return 0;
    }
    return run(chosen);
  } catch (...) {
    return tell(std::current_exception(), chosen);
  }
}
