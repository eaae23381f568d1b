#include "rw/tls/reload.hpp"

#include "rw/tls/directory_watch.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rw::tls {
namespace {

namespace asio = boost::asio;

std::vector<std::string> configured(const material_files& files) {
  std::vector<std::string> out{files.certificate, files.key, files.ca};
  std::erase(out, std::string());
  return out;
}

}  // namespace

reloader::reloader(asio::any_io_executor executor, std::shared_ptr<credentials> target,
                   material_files files, core::logger& log, reload_options options)
    : executor_(std::move(executor)),
      target_(std::move(target)),
      files_(std::move(files)),
      log_(log),
      options_(options),
      seen_(target_->current()->digest()) {
  warn_of_damage();
}

void reloader::warn_of_damage() const {
  const auto damage = target_->current()->damage();
  if (damage.empty()) return;
  log_.warning("the CA bundle is damaged, the certificates that can be read are in use",
               {{"file", files_.ca}, {"error", damage}});
}

asio::awaitable<void> reloader::run() {
  return watch_files(executor_, configured(files_), options_, &log_, [this] { check(); });
}

/// Logs once for each certificate that the one in use is not valid now.
void reloader::report_validity() {
  const auto leaf = target_->current()->leaf();
  const bool is_valid = !leaf || leaf->valid_at(std::chrono::system_clock::now());
  auto invalid = is_valid ? std::string() : leaf->fingerprint();
  const bool is_new = !is_valid && invalid != invalid_;
  invalid_ = std::move(invalid);
  if (!is_new) return;
  log_.error("the certificate in use is expired or not yet valid",
             {{"file", files_.certificate}, {"subject", leaf->subject()}});
}

bool reloader::check() {
  const bool changed = reload();
  report_validity();
  return changed;
}

bool reloader::reload() {
  const auto text = read_text(files_);
  const auto found = text ? text->digest() : text.error().message();
  if (found == seen_) return false;
  seen_ = found;
  const auto ended = text ? use(*text) : result<void>(text.error());
  if (ended) {
    successes_.fetch_add(1, std::memory_order_relaxed);
  } else {
    failures_.fetch_add(1, std::memory_order_relaxed);
    log_.error("new TLS files are rejected, the previous files stay in use until the next change",
               {{"reason", ended.error().message()}});
  }
  if (told_) told_(ended);
  return true;
}

result<void> reloader::use(const material_text& text) {
  // The files are back from an invalid set to the one in use: nothing to replace.
  if (text.digest() == target_->current()->digest()) {
    log_.info("TLS files are back to those in use");
    return {};
  }
  auto next = material::from_text(text, files_);
  if (!next) return next.error();
  const auto leaf = next->leaf();
  target_->replace(std::move(*next));
  warn_of_damage();
  if (!leaf) {
    log_.info("new TLS files in use", {{"generation", target_->generation()}});
    return {};
  }
  log_.info("new TLS files in use", {{"generation", target_->generation()},
                                     {"subject", leaf->subject()},
                                     {"fingerprint", leaf->fingerprint()}});
  return {};
}

}  // namespace rw::tls
