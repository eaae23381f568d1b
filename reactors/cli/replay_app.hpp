#pragma once

#include "rw/core/http/client.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/output.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>

namespace rw::cli {

/// `runtime-watcher replay`: posts recorded AdmissionReviews (admission.k8s.io/v1) to a webhook,
/// one after the other, as an API server would, and prints what each response says. For trials, and
/// to see what a review of a real cluster leads to.
///
/// Exit code 0: each review was allowed; 3: some were not, or their responses are invalid; 1: no
/// response.
class replay_app final : public app {
 public:
  /// Throws setting_error if a file or the CA is unreadable.
  replay_app(services& with, replay_settings settings);

  boost::asio::awaitable<int> run() override;

 private:
  struct outcome {
    bool allowed = false;
    std::string text = {};  ///< "allowed", or why not
  };

  boost::asio::awaitable<int> post_all();
  boost::asio::awaitable<outcome> post(const std::string* review);

  const replay_settings settings_;
  const std::unique_ptr<core::transport> transport_;
  http::client client_;
  output output_;
};

/// Returns what a response with this body says of a review; it begins with "allowed" if it is
/// allowed, and the webhook adds whether the review became an event. Checks the response as an API
/// server does: its kind, and the uid of the request.
std::string verdict_of(const std::string& review, unsigned status, const std::string& response);

}  // namespace rw::cli
