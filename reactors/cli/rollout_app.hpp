#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/output.hpp"
#include "rw/reactors/cli/settings.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include <memory>
#include <string>
#include <vector>

namespace rw::cli {

/// `runtime-watcher rollout status|history|plan|undo|pause|resume|promote [COMPONENT]`:
/// RuntimeRollouts of KCP, with the words, the output and the exit codes of `kubectl rollout`.
/// Without a component all of them.
///
/// `status` prints each change until the roll-out is done, or, with `watch` off, once. Exit code 0:
/// done, paused, resumed, promoted, rolled back; 1: failed, or not done in time.
class rollout_app final : public app {
 public:
  rollout_app(services& with, rollout_settings settings);
  ~rollout_app() override;

  boost::asio::awaitable<int> run() override;

 private:
  template <class T>
  using work = boost::asio::awaitable<T>;

  work<int> act();
  work<std::vector<boost::json::value>> read_all();
  work<int> follow(std::string name);
  work<std::string> read_invalid_sources();
  work<boost::json::array> read_runtimes(const boost::json::value* rollout);
  work<int> change(const boost::json::value* rollout);
  work<void> say(std::string line);
  work<void> show(boost::json::value document);
  work<void> show_table(std::string table);

  const rollout_settings settings_;
  std::unique_ptr<k8s::client> kcp_;
  bool shown_ = false;  ///< a document or a table
  output output_;
  output errors_;
};

}  // namespace rw::cli
