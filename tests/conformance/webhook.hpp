#pragma once

#include "rw/core/http/server.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/tls/issuer.hpp"

#include "sandbox.hpp"
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rw::conformance {

/// Which webhooks it is one of: those that are asked, or those that change objects before.
enum class webhook_kind : unsigned char { validating, mutating };

/// A webhook inside the process, over TLS, that the API server calls by URL. It allows
/// everything unless told otherwise.
class webhook final : public http::handler {
 public:
  /// Answers a request (admission.k8s.io/v1, AdmissionRequest) with the members of the response but
  /// `uid`.
  using decision = std::function<json(const json& request)>;

  /// For objects of `in`'s namespace only.
  explicit webhook(sandbox& in, webhook_kind as = webhook_kind::validating);
  ~webhook() override;
  webhook(const webhook&) = delete;
  webhook& operator=(const webhook&) = delete;

  /// Registers it for the operations on the resources of these rules, and waits until the API
  /// server calls it. `members` are further members of the webhook's configuration.
  void call_for(json rules, json members = boost::json::object());

  /// What it is to answer from now on.
  void answer(decision by);
  /// Answers nothing any more, until the API server gives up.
  void hang();
  /// Keeps the next request waiting until `release`; those behind it are answered.
  void hold();
  bool is_holding();
  void release();
  /// Sends this instead of a review. Status 0: closes the connection.
  void send(unsigned status, std::string body);

  /// Redirects reviews to any path but this one.
  void redirect(unsigned status, std::string path);
  /// The path and query that the last review was sent to.
  std::string target();

  /// All requests since the last call of this, or since `call_for`.
  std::vector<json> requests();
  /// The only one.
  json request();

  /// The webhook's qualified name, as the API server calls it in messages.
  const std::string& name() const noexcept { return name_; }
  std::string url() const;
  std::string ca_bundle() const;  ///< as base64

  std::size_t body_limit(const http::request&) const override { return 8u << 20; }
  boost::asio::awaitable<void> handle(http::request& from, http::response& into) override;

 private:
  boost::asio::awaitable<void> wait_for_the_end();
  boost::asio::awaitable<void> answer_when_released(json review, http::response* into);
  void answer_now(const json& review, http::response& into);
  void unregister();

  sandbox& in_;
  const webhook_kind as_;
  const std::string name_;
  const tls::issuer ca_;
  std::unique_ptr<core::transport> transport_;
  std::unique_ptr<http::server> server_;
  std::unique_ptr<core::task_group> tasks_;
  bool registered_ = false;

  std::mutex guard_;
  decision decide_;
  std::vector<json> requests_;
  std::optional<std::pair<unsigned, std::string>> raw_;
  std::optional<std::pair<unsigned, std::string>> redirect_;
  std::string target_;
  bool hangs_ = false;
  bool holds_ = false;
  bool holding_ = false;
  std::unique_ptr<core::wake> released_;
  bool scouted_ = false;
};

/// A rule for all operations on a resource.
json rule(const k8s::resource_type& type, json operations = {"*"}, std::string_view resource = {});

/// Those of mutating webhooks, as resources.hpp has those of validating ones.
extern const k8s::resource_type mutating_configurations;

/// A decision: no, and why.
json deny(const json& request);

/// A decision: yes, with a patch (RFC 6902).
webhook::decision patch_by(json operations);

/// A sandbox with a webhook that nothing is registered for yet.
struct hooked : sandbox {
  webhook hook{*this};

  /// Registers the webhook for all that happens to ConfigMaps.
  void watch_config_maps(json members = boost::json::object()) {
    hook.call_for(boost::json::array{rule(config_maps)}, std::move(members));
  }
};

}  // namespace rw::conformance
