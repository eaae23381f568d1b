#include "rw/k8s/config/process.hpp"

#include "rw/core/wake.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/this_coro.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <spawn.h>
#include <string_view>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace rw::k8s {
namespace {

namespace asio = boost::asio;
using descriptor = asio::posix::stream_descriptor;

constexpr std::size_t kept_errors = 4096;
constexpr int portions = 64;

std::string error_text(int error) {
  return std::system_category().message(error);
}

class owned_fd {
 public:
  explicit owned_fd(int fd = -1) : fd_(fd) {}
  owned_fd(owned_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  owned_fd& operator=(owned_fd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~owned_fd() { reset(); }

  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

struct pipe_ends {
  owned_fd read;
  owned_fd write;
};

std::optional<pipe_ends> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return pipe_ends{owned_fd(ends[0]), owned_fd(ends[1])};
}

/// Returns the environment of this process with `more`, which takes precedence.
std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& more) {
  std::vector<std::string> out;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const auto name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& added : more) replaced = replaced || added.first == name;
    if (!replaced) out.emplace_back(text);
  }
  for (const auto& [name, value] : more) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

/// Owns the two descriptions of posix_spawn(3).
class spawner {
 public:
  spawner() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    // A group of its own, so that its children can be ended with it. Default signals, whatever this
    // process blocks or ignores.
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~spawner() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  spawner(const spawner&) = delete;
  spawner& operator=(const spawner&) = delete;

  /// Returns 0, or errno.
  int start(const process_request& request, int out, int err, pid_t& pid) {
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, err, STDERR_FILENO);
    std::vector<std::string> arguments = {request.command};
    arguments.insert(arguments.end(), request.arguments.begin(), request.arguments.end());
    auto environment = environment_with(request.environment);
    return ::posix_spawnp(&pid, request.command.c_str(), &actions_, &attributes_,
                          pointers(arguments).data(), pointers(environment).data());
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// A running program. Its handlers keep it alive until the process has been reaped.
class child : public std::enable_shared_from_this<child> {
 public:
  child(const asio::any_io_executor& executor, core::watchdog& watchdog, std::size_t output_bytes)
      : ended(executor),
        watchdog_(watchdog),
        output_bytes_(output_bytes),
        out_(executor),
        err_(executor),
        exit_(executor) {}
  ~child() {
    // Positive only if the execution context is destroyed before the end was observed.
    if (pid_ <= 0) return;
    kill();
    ::waitpid(pid_, nullptr, 0);
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  void start(const process_request& request);

  void give_up(const std::string& reason) {
    if (result.error.empty()) result.error = reason;
    if (pid_ > 0) kill();
  }

  core::wake ended;
  process_result result;

 private:
  void refuse(const std::string& reason) {
    result.error = "cannot be started: " + reason;
    ended.set();
  }
  void kill() { ::kill(-pid_, SIGKILL); }
  void read(bool errors);
  bool drain(bool errors);
  bool bounded(bool errors);
  void await_exit();
  void reap();

  core::watchdog& watchdog_;
  const std::size_t output_bytes_;
  descriptor out_;
  descriptor err_;
  descriptor exit_;
  pid_t pid_ = -1;
  core::deadline deadline_;
};

void child::start(const process_request& request) {
  auto out = make_pipe();
  auto err = make_pipe();
  if (!out || !err) return refuse(error_text(errno));
  spawner spawner;
  if (const int error = spawner.start(request, out->write.get(), err->write.get(), pid_);
      error != 0) {
    pid_ = -1;
    return refuse(error_text(error));
  }
  result.started = true;
  owned_fd exit(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (exit.get() < 0) {
    const auto reason = error_text(errno);
    kill();
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    return refuse("its end cannot be awaited: " + reason);
  }
  ::fcntl(out->read.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err->read.get(), F_SETFL, O_NONBLOCK);
  out_.assign(out->read.release());
  err_.assign(err->read.release());
  exit_.assign(exit.release());
  deadline_ = watchdog_.watch(out_.get_executor(), [this, limit = request.limit] {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit).count();
    give_up("did not end within " + std::to_string(seconds) + " s");
  });
  deadline_.arm(watchdog_.now() + request.limit);
  read(false);
  read(true);
  await_exit();
}

void child::read(bool errors) {
  auto& from = errors ? err_ : out_;
  from.async_wait(descriptor::wait_read,
                  [self = shared_from_this(), errors](boost::system::error_code error) {
                    const bool open = (errors ? self->err_ : self->out_).is_open();
                    if (!error && open && self->drain(errors)) self->read(errors);
                  });
}

/// Reads the available output, in portions: an endless writer must not block the executor. Returns
/// false at the end of the output.
bool child::drain(bool errors) {
  auto& from = errors ? err_ : out_;
  auto& into = errors ? result.errors : result.output;
  std::array<char, 4096> buffer;
  for (int i = 0; i < portions; ++i) {
    const auto n = ::read(from.native_handle(), buffer.data(), buffer.size());
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    into.append(buffer.data(), static_cast<std::size_t>(n));
    if (!bounded(errors)) return false;
  }
  return true;
}

bool child::bounded(bool errors) {
  if (errors) {
    auto& text = result.errors;
    if (text.size() > 2 * kept_errors) text.erase(0, text.size() - kept_errors);
    return true;
  }
  if (result.output.size() <= output_bytes_) return true;
  give_up("wrote more than " + std::to_string(output_bytes_) + " bytes");
  return false;
}

void child::await_exit() {
  exit_.async_wait(descriptor::wait_read,
                   [self = shared_from_this()](boost::system::error_code error) {
                     if (!error) self->reap();
                   });
}

void child::reap() {
  int status = 0;
  // A host that ignores SIGCHLD has no status: the output alone then decides.
  if (::waitpid(pid_, &status, WNOHANG) == pid_) {
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_ = -1;
  deadline_ = {};
  // Its children may run on and keep the pipes open; its own output is in the pipes by now.
  drain(false);
  drain(true);
  boost::system::error_code ignored;
  out_.close(ignored);
  err_.close(ignored);
  exit_.close(ignored);
  ended.set();
}

}  // namespace

asio::awaitable<process_result> run_process(asio::any_io_executor executor,
                                            core::watchdog& watchdog, process_request request) {
  const auto process = std::make_shared<child>(executor, watchdog, request.output_bytes);
  process->start(request);
  const auto cancelled = co_await process->ended.wait();
  if (cancelled) {
    process->give_up("was cancelled");
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await process->ended.wait();
  }
  co_return std::move(process->result);
}

}  // namespace rw::k8s
