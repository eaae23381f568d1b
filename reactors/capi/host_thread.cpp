#include "rw/reactors/capi/host_thread.hpp"

#include "rw/core/unhandled.hpp"
#include "rw/reactors/cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <pthread.h>

namespace rw::capi {
namespace {

core::logger::sink sink_of(const rw_callbacks* callbacks) {
  if (callbacks == nullptr || callbacks->log == nullptr) {
    return [](std::string_view line) { std::fwrite(line.data(), 1, line.size(), stderr); };
  }
  return [log = callbacks->log, context = callbacks->context](std::string_view line) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    try {
      log(context, std::string(line).c_str());
    } catch (...) {  // nobody is left who could be told
    }
  };
}

}  // namespace

core::log_level parse_flags(const char* name, const char* const* flags,
                            const std::function<void(CLI::App&)>& describe,
                            const std::function<void(CLI::App&)>& check) {
  CLI::App parser("", name);
  describe(parser);
  std::string level = "info";
  parser.add_option("--log-level", level);
  for (auto* option : parser.get_options()) option->envname("");
  parser.set_help_flag();
  std::vector<std::string> arguments;
  for (auto at = flags; at != nullptr && *at != nullptr; ++at) arguments.emplace_back(*at);
  try {
    cli::parse(parser, arguments);
  } catch (const CLI::ParseError& e) {
    throw cli::setting_error(e.what());
  }
  check(parser);
  auto out = core::log_level::info;
  if (!core::parse_log_level(level, out)) {
    throw cli::setting_error("--log-level: debug, info, warning or error, not: " + level);
  }
  return out;
}

void write_error(const std::string& message, char* error, std::size_t size) noexcept {
  if (error == nullptr || size == 0) return;
  const auto length = std::min(message.size(), size - 1);
  std::copy_n(message.data(), length, error);
  error[length] = '\0';
}

host_thread::host_thread(const rw_callbacks* callbacks, core::log_level level)
    : services_(context_.get_executor(), level, sink_of(callbacks)) {
  services_.owns_process = false;
  core::set_unhandled(&core::log_unhandled);  // of the library's own copy
}

void host_thread::start(std::function<boost::asio::awaitable<int>()> body) {
  boost::asio::co_spawn(context_, std::move(body), [this](std::exception_ptr failure, int result) {
    result_ = result;
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      services_.log.error("failed", {{"error", e.what()}});
      result_ = 1;
    } catch (...) {
      services_.log.error("failed", {{"error", "not a std::exception"}});
      result_ = 1;
    }
  });
  // A new thread has its creator's mask.
  sigset_t all{};
  sigset_t before{};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { context_.run(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void host_thread::post(std::function<void()> task) {
  boost::asio::post(context_, std::move(task));
}

int host_thread::join() {
  if (thread_.joinable()) thread_.join();
  return result_;
}

}  // namespace rw::capi
