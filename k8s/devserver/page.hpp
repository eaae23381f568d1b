#pragma once

#include "rw/k8s/devserver/problem.hpp"
#include "rw/k8s/devserver/selection.hpp"
#include "rw/k8s/devserver/storage.hpp"
#include "rw/k8s/devserver/target.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// Start of a list's next page: the snapshot's version, and the first path. Opaque text for the
/// client.
struct continue_token {
  std::uint64_t version = 0;  ///< 0: the current state
  std::string from;

  std::string text() const;
  static outcome<continue_token> parse(std::string_view text);
};

struct page {
  std::vector<record_ptr> items;
  std::uint64_t version = 0;
  std::string continue_token = {};
  std::uint64_t remaining = 0;
};

/// Lists as the query requests (Kubernetes API concepts, "Retrieving large results sets in chunks",
/// "Semantics for get and list"): all pages of one list show the same snapshot, rebuilt from
/// history. Returns 410 if history is too short, with a token that continues with the current
/// state.
outcome<page> list_page(const storage& in, const collection& collection, const selection& selection,
                        const query& parameters);

/// Parses a resourceVersion; 400 if it is invalid.
outcome<std::uint64_t> parse_version(std::string_view text);

}  // namespace rw::k8s::devserver
