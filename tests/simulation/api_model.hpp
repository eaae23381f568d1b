#pragma once

#include "rw/core/http/server.hpp"

#include "tests/simulation/network.hpp"
#include "tests/simulation/store.hpp"
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::simulation {

/// What a kube-apiserver is to its clients (Kubernetes API concepts): discovery, GET, lists in
/// pages of one version, watches from a version with bookmarks, streaming lists from 1.32 on, 410
/// for what was compacted.
class api_model final : public http::handler {
 public:
  static constexpr std::uint16_t port = 6443;

  struct state {
    unsigned minor = 34;        ///< of the version
    std::size_t page = 500;     ///< objects of a page, at most
    unsigned failing = 0;       ///< status of all answers; 0: as it should be
    bool forbids = false;       ///< lists and watches of the first kind
    bool hides = false;         ///< the first kind: discovery has gaps while a server starts
    bool stalls = false;        ///< watches show nothing, though they stay open
    duration watch_delay = {};  ///< until a watch shows a change, at most
  };

  api_model(environment& in, store& objects, bool http2);
  ~api_model() override;

  /// Serves until `stop`, which breaks off everything.
  void start();
  void stop();
  bool up() const noexcept { return running_ != nullptr; }

  state now;

 private:
  struct target;
  struct selection;
  struct snapshot;
  class watch;
  struct process;

  std::size_t body_limit(const http::request&) const override { return 1 << 20; }
  boost::asio::awaitable<void> handle(http::request& from, http::response& into) override;

  void discover(const target& path, http::response& into) const;
  void get(const target& path, http::response& into);
  bool serves(std::size_t kind) const { return store_.defines(kind) && !(now.hides && kind == 0); }
  void list(const target& path, http::response& into);
  void open_watch(const target& path, http::response& into);
  static void fail(http::response& into, unsigned code, std::string_view reason);
  boost::asio::awaitable<void> tick();
  void wake();

  environment& in_;
  store& store_;
  core::metrics metrics_;
  const std::unique_ptr<core::transport> transport_;
  std::unique_ptr<process> running_;
  std::list<watch*> watches_;
  std::map<std::string, std::vector<std::string>> pages_;  ///< by continue token: what is left
  std::uint64_t tokens_ = 0;
};

}  // namespace rw::simulation
