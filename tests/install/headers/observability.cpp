#include "use.hpp"
#include <rw/core/log.hpp>
#include <rw/core/metrics.hpp>
#include <string>

namespace core = rw::core;

void use_observability() {
  std::string out;
  core::logger log(core::log_level::info, [&out](std::string_view line) { out += line; });
  log.debug("not written");
  log.info("host started", {{"port", 80}});
  EXPECT(out.find(R"("msg":"host started","port":80)") != std::string::npos);
  EXPECT(out.find("not written") == std::string::npos);

  core::metrics metrics;
  core::make_counter(metrics, "host_things_total", "Number of things").Increment();
  EXPECT(core::expose(metrics).find("host_things_total 1") != std::string::npos);
}
