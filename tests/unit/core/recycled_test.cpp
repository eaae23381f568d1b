#include "rw/core/recycled.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace rw::core_test {
BOOST_AUTO_TEST_SUITE(recycled)

namespace core = rw::core;

namespace {

struct message : core::recycled<message> {
  std::size_t number = 0;
  std::byte text[200] = {};
};

}  // namespace

BOOST_AUTO_TEST_CASE(memory_of_an_object_is_the_next_ones) {
  auto first = std::make_unique<message>();
  const void* const memory = first.get();
  first.reset();
  const auto second = std::make_unique<message>();
  BOOST_TEST((memory == second.get() || !core::recycles));
  BOOST_TEST(second->number == 0U);
}

BOOST_AUTO_TEST_CASE(thread_keeps_the_memory_of_few_objects_whichever_thread_made_them) {
  std::vector<std::unique_ptr<message>> made(100);
  for (auto& each : made) each = std::make_unique<message>();
  std::thread([&] {
    made.clear();  // what is kept goes with the thread: LeakSanitizer and valgrind would say so
    for (int i = 0; i < 20; ++i) made.push_back(std::make_unique<message>());
  }).join();
  BOOST_TEST(made.size() == 20U);
  for (auto& each : made) each->number = 1;
}

BOOST_AUTO_TEST_CASE(objects_are_destroyed_as_late_as_the_end_of_their_thread) {
  struct last_one {
    ~last_one() {
      held.reset();
      held = std::make_unique<message>();
    }
    std::unique_ptr<message> held;
  };
  std::thread([] {
    thread_local last_one last;  // exists before the memory is kept, and is destroyed after it
    last.held = std::make_unique<message>();
    BOOST_TEST(last.held->number == 0U);
  }).join();
}

BOOST_AUTO_TEST_CASE(allocator_recycles_single_objects_and_allocates_others) {
  core::recycled_allocator<message> memory;
  auto* const one = memory.allocate(1);
  memory.deallocate(one, 1);
  auto* const again = memory.allocate(1);
  BOOST_TEST((one == again || !core::recycles));
  auto* const many = memory.allocate(3);
  BOOST_TEST((many != again));
  memory.deallocate(many, 3);
  memory.deallocate(again, 1);
  BOOST_TEST((memory == core::recycled_allocator<message>(core::recycled_allocator<int>())));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::core_test
