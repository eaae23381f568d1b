// Each part must not compile with -Werror=dangling: the result is a view into a temporary. Without
// PART, which must, all of them are views into objects that last (tests/dangling.cmake).

#include "rw/k8s/objects/types.hpp"

#include <boost/json/parse.hpp>

namespace {

boost::json::value parsed() {
  return boost::json::parse(R"({"metadata":{"uid":"u","labels":{"a":"b"}}})");
}

}  // namespace

std::size_t size_of_view() {
  using namespace rw::k8s;
  const auto lasts = parsed();
#if PART == 1
  const auto view = find_string(parsed(), {"metadata", "uid"});
#elif PART == 2
  const auto view = label(parsed(), "a");
#elif PART == 3
  const auto view = annotation(parsed(), "a");
#elif PART == 4
  const auto view = uid_of(parsed());
#elif PART == 5
  const auto view = resource_version_of(parsed());
#elif PART == 6
  const auto* const view = find(parsed(), {"metadata"});
#elif PART == 7
  const auto* const view = find_array(parsed(), {"metadata"});
#else
  const auto view = label(lasts, "a");
#endif
  return sizeof(view) + lasts.as_object().size();
}
