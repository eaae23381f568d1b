#define BOOST_TEST_MODULE runtime_watcher
#include <boost/test/unit_test.hpp>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
// What ThreadSanitizer reports without there being a race.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  // The reference counts of Asio's any_executor are ordered by a release decrement and an acquire
  // fence (boost/asio/detail/atomic_count.hpp); the sanitizer does not know fences.
  return "race:boost::asio::execution::detail::any_executor_base::destroy_shared\n";
}
#endif
#endif

#include "rw/core/fixed_hash_key.hpp"

#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/resource.h>

namespace {

/// Adds the process's CPU seconds to the file that RW_TEST_CPU names (tests/costs.py).
struct cpu_record {
  ~cpu_record() {
    const auto* const file = std::getenv("RW_TEST_CPU");
    rusage used{};
    if (file == nullptr || getrusage(RUSAGE_SELF, &used) != 0) return;
    std::ifstream arguments("/proc/self/cmdline");
    std::string line;
    for (std::string each; std::getline(arguments, each, '\0');) line += ' ' + each;
    const auto seconds = [](const timeval& of) {
      return static_cast<double>(of.tv_sec) + static_cast<double>(of.tv_usec) / 1e6;
    };
    std::ofstream out(file, std::ios::app);
    out << std::to_string(seconds(used.ru_utime) + seconds(used.ru_stime)) + line + "\n";
  }
} const record;

/// What a test finds once it finds each time.
const bool repeats = (rw::core::fix_hash_key({1, 2}), true);

}  // namespace
