#define BOOST_TEST_MODULE runtime_watcher
#include <boost/test/unit_test.hpp>
