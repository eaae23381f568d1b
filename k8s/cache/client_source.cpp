#include "rw/k8s/cache/api_source.hpp"
#include "rw/k8s/cache/informer.hpp"

#include <utility>

namespace rw::k8s {
namespace {

namespace asio = boost::asio;

class client_source final : public api_source {
 public:
  explicit client_source(client& api) : api_(api) {}

  asio::any_io_executor get_executor() const noexcept override { return api_.get_executor(); }

  asio::awaitable<result<std::pair<unsigned, unsigned>>> server_version() override {
    return api_.server_version(once);
  }

  asio::awaitable<result<std::string>> list_text(resource_type type, selection objects,
                                                 list_options page) override {
    return api_.list_text(std::move(type), std::move(objects), std::move(page), once);
  }

  asio::awaitable<result<opened_watch>> open_watch(resource_type type, selection objects,
                                                   watch_options options,
                                                   watch_sink& into) override {
    return api_.open_watch(std::move(type), std::move(objects), std::move(options), into);
  }

  bool streams_lists() const noexcept override { return api_.streams_lists(); }
  void rule_out_streaming_lists() noexcept override { api_.rule_out_streaming_lists(); }

 private:
  static constexpr call_options once{.retry = false};  // the informer has the backoff

  client& api_;
};

}  // namespace

std::shared_ptr<api_source> source_of(client& api) {
  return std::make_shared<client_source>(api);
}

informer::informer(client& api, resource_type type, informer_options options,
                   informer_environment environment)
    : informer(source_of(api), std::move(type), std::move(options), std::move(environment)) {}

}  // namespace rw::k8s
