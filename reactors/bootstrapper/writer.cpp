#include "reactors/bootstrapper/writer.hpp"

#include <utility>

namespace rw::bootstrapper {

namespace asio = boost::asio;
namespace json = boost::json;

k8s::result<void> writer::begin() {
  if (may_write_ && !may_write_()) {
    return k8s::failure{.code = k8s::errc::fenced,
                        .message = "the runtime is not to be written to any more"};
  }
  ++writes_;
  return {};
}

asio::awaitable<k8s::result<json::value>> writer::apply(k8s::resource_type type,
                                                        json::value object) {
  const auto allowed = begin();
  if (!allowed) co_return allowed.error();
  k8s::apply_options options{.field_manager = field_manager_, .force = true};
  auto done = co_await api_->apply(std::move(type), std::move(object), std::move(options));
  co_return done;
}

asio::awaitable<k8s::result<json::value>> writer::dry_run(k8s::resource_type type,
                                                          json::value object) {
  k8s::apply_options options{.field_manager = field_manager_, .force = true, .dry_run = true};
  auto done = co_await api_->apply(std::move(type), std::move(object), std::move(options));
  co_return done;
}

asio::awaitable<k8s::result<json::value>> writer::patch(k8s::resource_type type,
                                                        k8s::object_key key, json::value changes) {
  const auto allowed = begin();
  if (!allowed) co_return allowed.error();
  k8s::write_options options{.field_manager = field_manager_};
  auto done = co_await api_->patch(std::move(type), std::move(key), k8s::patch_type::json,
                                   std::move(changes), std::move(options));
  co_return done;
}

asio::awaitable<k8s::result<void>> writer::remove(k8s::resource_type type, k8s::object_key key,
                                                  std::string uid) {
  const auto allowed = begin();
  if (!allowed) co_return allowed.error();
  k8s::delete_options options{.uid = std::move(uid)};
  const auto done = co_await api_->remove(std::move(type), std::move(key), std::move(options));
  if (!done && !done.error().is(k8s::errc::not_found)) co_return done.error();
  co_return k8s::result<void>();
}

}  // namespace rw::bootstrapper
