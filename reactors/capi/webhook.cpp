#include "rw/reactors/capi/host_thread.hpp"
#include "rw/reactors/cli/command_line.hpp"
#include "rw/reactors/cli/webhook_app.hpp"

namespace {

using namespace rw;

struct parsed_flags {
  cli::webhook_settings settings;
  core::log_level level = core::log_level::info;
};

parsed_flags parse(const char* const* flags) {
  parsed_flags all;
  auto& out = all.settings;
  all.level = capi::parse_flags(
      "webhook", flags, [&out](CLI::App& app) { cli::describe_webhook(app, out); },
      [&out](CLI::App& app) { cli::check_webhook(app, {}, out); });
  return all;
}

}  // namespace

struct rw_webhook {
  rw_webhook(parsed_flags flags, const rw_callbacks* callbacks)
      : thread(callbacks, flags.level), app(thread.services(), std::move(flags.settings)) {
    thread.start([this] { return app.run(); });
  }

  capi::host_thread thread;
  cli::webhook_app app;
};

rw_webhook* rw_webhook_start(const char* const* flags, const rw_callbacks* callbacks, char* error,
                             size_t error_size) {
  try {
    return new rw_webhook(parse(flags), callbacks);
  } catch (const std::exception& e) {
    capi::write_error(e.what(), error, error_size);
    return nullptr;
  }
}

uint16_t rw_webhook_port(const rw_webhook* webhook) {
  return webhook->app.address().port();
}

uint16_t rw_webhook_metrics_port(const rw_webhook* webhook) {
  return webhook->app.admin_address().port();
}

int rw_webhook_free(rw_webhook* webhook) {
  if (webhook == nullptr) return 0;
  webhook->thread.post([webhook] { webhook->app.stop(); });
  const int result = webhook->thread.join();
  delete webhook;
  return result;
}
