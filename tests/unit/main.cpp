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
