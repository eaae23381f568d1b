#pragma once

#include "k8s/devserver/problem.hpp"
#include "k8s/devserver/selection.hpp"
#include "k8s/devserver/storage.hpp"
#include "k8s/devserver/target.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// A list that is read in pages goes on from here: the snapshot's version, and the path from which
/// the next page begins. The client sees it as an opaque text.
struct continue_token {
  std::uint64_t version = 0;  ///< 0: whatever is there now
  std::string from;

  std::string text() const;
  static outcome<continue_token> parse(std::string_view text);
};

/// What a list is answered with.
struct page {
  std::vector<record_ptr> items;
  std::uint64_t version = 0;
  std::string continue_token = {};
  std::uint64_t remaining = 0;
};

/// Lists as the query asks (Kubernetes API concepts, "Retrieving large results sets in chunks",
/// "Semantics for get and list"): all pages of one list show the same snapshot, which is rebuilt
/// from history; 410 once that does not go back so far, with a token that goes on with what is
/// there now.
outcome<page> list_page(const storage& in, const collection& what, const selection& which,
                        const query& parameters);

/// Reads a resourceVersion; 400 if it is none.
outcome<std::uint64_t> parse_version(std::string_view text);

}  // namespace rw::k8s::devserver
