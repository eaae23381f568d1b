#include "rw/reactors/cli/waiting_app.hpp"

#include "rw/core/http/server.hpp"
#include "rw/reactors/admin/admin.hpp"
#include "rw/tls/directory_watch.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

std::vector<std::string> names_of(const tls::material_files& files) {
  std::vector<std::string> out{files.certificate, files.key, files.ca};
  std::erase(out, std::string());
  return out;
}

/// Why the files are not valid; empty: they are.
std::string error_of(const tls::material_files& files) {
  const auto loaded = tls::material::load(files);
  return loaded ? std::string() : loaded.error().message();
}

}  // namespace

class waiting_app::admin {
 public:
  admin(services& with, const needed_files& files, const std::string& error)
      : plain_(core::make_plain_transport()),
        pages_(with.metrics,
               {.not_ready = [&error] { return error.empty() ? "starting\n" : error + "\n"; }}),
        server_(with.executor, {"admin", listening_address(files.admin, files.admin_setting), {}},
                pages_, {*plain_, with.watchdog, with.log, with.metrics}) {}

  http::server& server() { return server_; }

 private:
  const std::unique_ptr<core::transport> plain_;
  rw::admin::pages pages_;
  http::server server_;
};

waiting_app::waiting_app(services& with, needed_files files,
                         std::function<std::unique_ptr<app>()> make)
    : app(with),
      files_(std::move(files)),
      make_(std::move(make)),
      admin_(std::make_unique<admin>(with, files_, error_)) {}

waiting_app::~waiting_app() = default;

void waiting_app::stop() {
  stopped_ = true;
  if (server_) server_->stop();
  app::stop();
}

/// Reads the files, and ends the wait if they are valid.
void waiting_app::look() {
  const auto before = std::exchange(error_, error_of(files_.tls));
  if (error_.empty()) return app::stop();
  if (error_ == before) return;
  services_.log.error("waiting for valid TLS files",
                      {{"settings", files_.settings}, {"reason", error_}});
}

/// Returns when the files are valid, or it is stopped.
asio::awaitable<void> waiting_app::wait_for_files() {
  core::task_group background(services_.executor, fail_on_exception());
  background.spawn(services_.watchdog.run());
  background.spawn(admin_->server().run());
  log_listening(services_.log, "admin", admin_->server().address());
  background.spawn(tls::watch_files(services_.executor, names_of(files_.tls), {}, &services_.log,
                                    [this] { look(); }));
  co_await stop_.wait();
  admin_->server().drain();
  background.cancel();
  co_await background.join();
  rethrow_failure();
}

asio::awaitable<int> waiting_app::run() {
  co_await wait_for_files();
  admin_.reset();  // the server binds the same address
  if (stopped_) co_return 0;
  services_.log.info("TLS files are valid now", {{"settings", files_.settings}});
  server_ = make_();
  const auto code = co_await server_->run();
  co_return code;
}

std::unique_ptr<app> make_when_valid(services& with, needed_files files,
                                     std::function<std::unique_ptr<app>()> make) {
  const bool waits = !names_of(files.tls).empty() && !files.admin.host.empty();
  if (!waits || error_of(files.tls).empty()) return make();
  return std::make_unique<waiting_app>(with, std::move(files), std::move(make));
}

}  // namespace rw::cli
