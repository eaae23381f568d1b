#pragma once

#include "k8s/client.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace rw::bootstrapper {

/// The one way in which a runtime is written to: each write asks first whether it still may, since
/// the runtime's mode can change at any moment, and is counted. A write that may not be fails with
/// `errc::fenced`. Dry runs change nothing and are always allowed.
class writer {
 public:
  /// `may_write` is asked before each write; empty: always.
  writer(std::shared_ptr<k8s::client> api, std::string field_manager,
         std::function<bool()> may_write)
      : api_(std::move(api)),
        field_manager_(std::move(field_manager)),
        may_write_(std::move(may_write)) {}

  /// Server-side apply, by force.
  boost::asio::awaitable<k8s::result<boost::json::value>> apply(k8s::resource_type type,
                                                                boost::json::value object);
  boost::asio::awaitable<k8s::result<boost::json::value>> dry_run(k8s::resource_type type,
                                                                  boost::json::value object);
  /// RFC 6902.
  boost::asio::awaitable<k8s::result<boost::json::value>> patch(k8s::resource_type type,
                                                                k8s::object_key key,
                                                                boost::json::value changes);
  /// The object with that uid; not found is a success.
  boost::asio::awaitable<k8s::result<void>> remove(k8s::resource_type type, k8s::object_key key,
                                                   std::string uid = {});

  k8s::client& api() noexcept { return *api_; }
  const std::string& field_manager() const noexcept { return field_manager_; }
  std::size_t writes() const noexcept { return writes_; }

 private:
  k8s::result<void> begin();

  const std::shared_ptr<k8s::client> api_;
  const std::string field_manager_;
  const std::function<bool()> may_write_;
  std::size_t writes_ = 0;
};

}  // namespace rw::bootstrapper
