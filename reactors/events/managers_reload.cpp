#include "rw/reactors/events/managers_reload.hpp"

#include "rw/tls/files.hpp"

#include <cstdint>
#include <utility>

namespace rw {
namespace {

core::counter& reloads_with(core::metrics& registry, const char* result) {
  return core::make_counter(registry, "rw_managers_reloads_total",
                            "Number of times that a changed managers' file was read",
                            {{"outcome", result}});
}

}  // namespace

managers_reloader::managers_reloader(boost::asio::any_io_executor executor, std::string file,
                                     managers_in_use& target, core::logger& log,
                                     core::metrics& metrics, tls::watch_times times)
    : executor_(std::move(executor)),
      file_(std::move(file)),
      target_(target),
      log_(log),
      times_(times),
      used_(reloads_with(metrics, "used")),
      refused_(reloads_with(metrics, "refused")) {
  check();
}

boost::asio::awaitable<void> managers_reloader::run() {
  return tls::watch_files(executor_, {file_}, times_, &log_, [this] { check(); });
}

bool managers_reloader::check() {
  const auto text = tls::read_file(file_);
  const auto contents = text ? *text : text.error().message();
  if (contents == observed_) return false;
  observed_ = contents;
  if (text && text->empty() && !target_.current()) {
    log_.info("managers' file empty, every manager is known", {{"file", file_}});
    return true;
  }
  auto parsed = text ? parse_managers(*text) : managers_result(core::text_error{contents});
  if (!parsed) {
    refused_.Increment();
    log_.error("managers' file refused",
               {{"file", file_},
                {"reason", parsed.error().message},
                {"in_use", target_.current() ? "the last valid one" : "every manager"}});
    return true;
  }
  used_.Increment();
  log_.info("managers' file in use",
            {{"file", file_}, {"watches", std::uint64_t{parsed->watches().size()}}});
  target_.replace(std::move(*parsed), contents);
  if (told_) told_();
  return true;
}

}  // namespace rw
