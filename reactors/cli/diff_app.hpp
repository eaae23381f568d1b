#pragma once

#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/output.hpp"
#include "rw/reactors/cli/runtimes_client.hpp"

#include <boost/asio/awaitable.hpp>

namespace rw::cli {

/// `runtime-watcher diff`: prints what the next passes of the manager would write to one runtime.
/// The leader computes it; nothing is written. Exit code 0: nothing differs; 3: something does; 1:
/// no leader responds, KCP has no such Kyma, or the runtime has not answered.
class diff_app final : public app {
 public:
  diff_app(services& with, diff_settings settings);

  boost::asio::awaitable<int> run() override;

 private:
  boost::asio::awaitable<int> show();

  const diff_settings settings_;
  runtimes_client manager_;
  output output_;
  output errors_;
};

}  // namespace rw::cli
