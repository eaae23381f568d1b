#include "rw/k8s/cache/list_decoder.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/json_input.hpp"

namespace rw::k8s {
namespace {

/// Passes over one page, and gathers what it holds.
class page_reader {
 public:
  page_reader(const object_format& expected, const projection& keep)
      : expected_(expected), keep_(keep) {}

  bool read(core::token_walk& walk) {
    page = {};
    wrong.clear();
    has_items_ = false;
    kind_.clear();
    const bool whole = walk.object([&](std::string_view name) {
      if (name == "items") return read_items(walk);
      if (name == "metadata") return read_metadata(walk);
      if (name == "kind") return read_kind(walk);
      return walk.skip();
    });
    if (!whole) return false;
    if (!has_items_ && wrong.empty()) wrong = "has no items: it is a " + core::printable(kind_);
    if (page.resource_version.empty() && wrong.empty()) wrong = "has no metadata.resourceVersion";
    return true;
  }

  list_page page;
  std::string wrong;  ///< with what is JSON, but no such list

 private:
  bool read_kind(core::token_walk& walk) {
    std::string_view kind;
    if (!string_or_null(walk, kind)) return false;
    kind_ = kind;
    return true;
  }

  bool read_metadata(core::token_walk& walk) {
    std::string_view version;
    std::string_view token;
    const bool whole = walk.object([&](std::string_view name) {
      if (name == "resourceVersion") return string_or_null(walk, version);
      if (name == "continue") return string_or_null(walk, token);
      return walk.skip();
    });
    page.resource_version = version;
    page.continue_token = token;
    return whole;
  }

  bool read_items(core::token_walk& walk) {
    page.items.clear();
    has_items_ = true;
    if (walk.peek() == 'n') return walk.skip();  // what Go makes of an empty list
    return walk.array([&] {
      object_reader reader(walk, json_input::of_thread().builder());
      if (!reader.read(keep_.root())) return false;
      page.items.push_back(reader.finish(expected_, wrong, kind_));
      return true;
    });
  }

  const object_format& expected_;
  const projection& keep_;
  bool has_items_ = false;
  std::string kind_;
};

}  // namespace

result<list_page> decode_list(const std::string& body, const object_format& expected,
                              const projection& keep) {
  page_reader reader(expected, keep);
  auto error = json_input::of_thread().read(body, "is no list of objects",
                                            [&](auto& walk) { return reader.read(walk); });
  if (error.empty()) error = std::move(reader.wrong);
  if (error.empty()) return std::move(reader.page);
  return failure{.code = errc::bad_response, .message = std::move(error)};
}

}  // namespace rw::k8s
