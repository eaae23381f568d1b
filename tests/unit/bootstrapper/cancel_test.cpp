// A sync that is cancelled at any moment ends, with all that it began.

#include "rw/core/task_group.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/sync_env.hpp"
#include "tests/unit/run.hpp"
#include <utility>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(cancel)

namespace {

asio::awaitable<void> settle(sync_env* w, bootstrapper::render_input from) {
  co_await w->add("skr");
  co_await w->must_sync("skr", {from});
}

asio::awaitable<void> look(sync_env* w, bootstrapper::render_input from, bool* ended) {
  const auto report = co_await w->sync("skr", {std::move(from)});
  *ended = report.has_value();
}

asio::awaitable<void> join(core::task_group* tasks) {
  co_await tasks->join();
}

}  // namespace

/// Cancelled between any two handlers, so also where an answer is on its way to who waits for it.
BOOST_AUTO_TEST_CASE(sync_cancelled_at_any_moment_leaves_nothing_running) {
  sync_env w;
  w.options.reads_at_once = 1;  // so that each read is a group of its own
  const auto from = good_sources(ca_pem());
  test::run(w.context, settle(&w, from));
  bool ended = false;
  int handlers = 0;
  for (; !ended && handlers < 2000; ++handlers) {
    core::task_group tasks(w.context.get_executor());
    tasks.spawn(look(&w, from, &ended));
    w.context.restart();
    for (int i = 0; i < handlers; ++i) w.context.run_one();
    tasks.cancel();
    test::run(w.context, join(&tasks));
  }
  BOOST_TEST(ended);
  BOOST_TEST(handlers > 20);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
