#pragma once

#include "rw/core/task_group.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"

#include <boost/asio/awaitable.hpp>

#include "tests/unit/http/host.hpp"
#include "tests/unit/k8s/samples.hpp"
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace rw::k8s::test {

/// An informer on a host's thread.
class informing {
 public:
  informing(http::test::host& here, client& api) : here_(here), tasks_(here.executor()) {
    here_.on_thread([&] {
      informer_options options{.streaming_list = false};
      options.backoff_base = std::chrono::milliseconds(1);
      options.backoff_limit = std::chrono::milliseconds(50);
      informer_.emplace(
          api, configmaps(), options,
          informer_environment{here_.clock, log_, here_.metrics, core::make_random_source()});
      tasks_.spawn(informer_->run());
    });
  }
  ~informing() {
    tasks_.cancel();
    here_.call(tasks_.join());
    here_.on_thread([this] { informer_.reset(); });
  }
  informing(const informing&) = delete;
  informing& operator=(const informing&) = delete;

  /// Waits until the object is in the store at that version.
  bool eventually_has(const std::string& name, const std::string& version) {
    return http::test::eventually([&] {
      bool has = false;
      here_.on_thread(
          [&] { has = informer_->objects().get("default", name).resource_version() == version; });
      return has;
    });
  }

  /// The same at any version.
  bool eventually_has(const std::string& name) {
    return http::test::eventually([&] {
      bool has = false;
      here_.on_thread(
          [&] { has = !informer_->objects().get("default", name).resource_version().empty(); });
      return has;
    });
  }

  bool eventually_said(const std::string& what) {
    return http::test::eventually([&] {
      const std::lock_guard lock(guard_);
      return said_.find(what) != std::string::npos;
    });
  }

  std::string said() {
    const std::lock_guard lock(guard_);
    return said_;
  }

  double watches_that(const std::string& ended) const {
    return here_.metric("rw_informer_watches_total{end=\"" + ended + "\",resource=\"configmaps\"}");
  }

 private:
  http::test::host& here_;
  core::task_group tasks_;
  std::mutex guard_;
  std::string said_;
  core::logger log_{core::log_level::debug, [this](std::string_view line) {
                      const std::lock_guard lock(guard_);
                      said_ += line;
                    }};
  std::optional<informer> informer_;
};

}  // namespace rw::k8s::test
