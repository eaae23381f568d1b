#include "rw/core/thread_owner.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <csignal>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace rw::thread_owner_test {
BOOST_AUTO_TEST_SUITE(thread_owner)

using core_owner = rw::core::thread_owner;

namespace {

struct ending {
  int signal = 0;  ///< 0: it ended by itself
  std::string errors;
};

/// Runs in a process of its own.
ending end_of(const std::function<void()>& body) {
  int ends[2];
  BOOST_REQUIRE(::pipe(ends) == 0);
  const auto child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::signal(SIGABRT, SIG_DFL);
    ::alarm(20);
    body();
    ::_exit(0);
  }
  ::close(ends[1]);
  ending out;
  char buffer[512];
  for (;;) {
    const auto got = ::read(ends[0], buffer, sizeof buffer);
    if (got <= 0) break;
    out.errors.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) out.signal = WTERMSIG(status);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(second_thread_inside_ends_the_process) {
  const auto ended = end_of([] {
    const core_owner owner("a thing");
    std::atomic<bool> inside = false;
    std::thread first([&] {
      const core_owner::scope here(owner);
      inside = true;
      inside.notify_all();
      for (;;) ::pause();
    });
    inside.wait(false);
    const core_owner::scope too(owner);
    first.join();
  });
  BOOST_TEST(ended.signal == SIGABRT);
  BOOST_TEST(ended.errors.find("two threads at once") != std::string::npos, ended.errors);
  BOOST_TEST(ended.errors.find("a thing") != std::string::npos, ended.errors);
}

BOOST_AUTO_TEST_CASE(threads_one_after_the_other_and_nested_scopes_are_fine) {
  const auto ended = end_of([] {
    const core_owner owner("a thing");
    const auto use = [&owner] {
      const core_owner::scope outer(owner);
      {
        const core_owner::scope inner(owner);
      }
      const core_owner::scope again(owner);
    };
    use();
    std::thread(use).join();
    use();
  });
  BOOST_TEST(ended.signal == 0, ended.errors);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::thread_owner_test
