#pragma once

#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/object.hpp"
#include "rw/k8s/objects/object_reader.hpp"
#include "rw/k8s/objects/projection.hpp"

#include <string>
#include <vector>

namespace rw::k8s {

/// One page of a list (Kubernetes API concepts, "Retrieving large results sets in chunks").
struct list_page {
  std::vector<object> items;
  std::string resource_version;
  std::string continue_token;  ///< empty: it was the last page
};

/// Reads the answer to a list: all of it, or nothing. Objects look as in a watch: what their lists
/// leave out (kind, apiVersion) is filled in. `errc::bad_answer` with a message that is a
/// sentence's end, such as "is not JSON: ...".
result<list_page> decode_list(const std::string& body, const object_format& expected,
                              const projection& keep);

}  // namespace rw::k8s
