#include "rw/reactors/events/schedule.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(verdict)

using rw::dispatch::retry_after;
using rw::dispatch::verdict_of;
using std::chrono::seconds;

BOOST_AUTO_TEST_CASE(success_is_any_2xx) {
  for (unsigned status = 200; status < 300; ++status) {
    BOOST_TEST((verdict_of(status) == rw::dispatch::delivery_verdict::delivered));
  }
}

BOOST_AUTO_TEST_CASE(status_that_may_recover_is_tried_again) {
  for (const unsigned status :
       {401, 403, 404, 408, 429, 500, 501, 502, 503, 504, 599, 301, 307, 0}) {
    BOOST_TEST((verdict_of(status) == rw::dispatch::delivery_verdict::retry), status);
  }
}

BOOST_AUTO_TEST_CASE(status_4xx_rejects_the_event) {
  for (const unsigned status : {400, 405, 413, 402, 406, 410, 415, 418, 421, 426, 431, 451, 499}) {
    BOOST_TEST((verdict_of(status) == rw::dispatch::delivery_verdict::rejected), status);
  }
}

BOOST_AUTO_TEST_CASE(retry_after_is_seconds_of_five_minutes_at_most) {
  BOOST_TEST((retry_after("0") == seconds(0)));
  BOOST_TEST((retry_after("7") == seconds(7)));
  BOOST_TEST((retry_after("300") == seconds(300)));
  BOOST_TEST((retry_after("301") == seconds(300)));
  BOOST_TEST((retry_after("4294967295") == seconds(300)));
  BOOST_TEST((retry_after("99999999999999999999999999") == seconds(300)));
}

BOOST_AUTO_TEST_CASE(retry_after_in_other_forms_is_not_heeded) {
  for (const auto* text :
       {"", "-1", "+5", " 5", "5 ", "5s", "1.5", "0x10", "soon", "Wed, 21 Oct 2015 07:28:00 GMT"}) {
    BOOST_TEST((retry_after(text) == seconds(0)), text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
