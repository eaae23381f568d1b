#include "rw/reactors/watcher_installer/cluster_records.hpp"

#include "rw/core/hash.hpp"
#include "rw/core/text.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/json/object.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rw::watcher_installer {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::seconds;

constexpr std::string_view none = "-";
constexpr std::size_t checked_at_once = 4;
constexpr char between_clusters = ',';

/// Takes the text before the next `end`, and that.
std::string_view take(std::string_view& from, char end) {
  const auto length = std::min(from.find(end), from.size());
  const auto out = from.substr(0, length);
  from.remove_prefix(std::min(length + 1, from.size()));
  return out;
}

std::vector<std::string> parse_clusters(std::string_view text) {
  std::vector<std::string> out;
  if (text == none) return out;
  while (!text.empty()) out.emplace_back(take(text, between_clusters));
  return out;
}

/// Nothing: the text is damaged.
std::optional<cluster_error> parse_fault(std::string_view since, std::string_view reason) {
  constexpr std::int64_t latest = 9'000'000'000;  // the clock's range ends soon after that
  const auto count = core::parse_number<std::int64_t>(since);
  const auto word = parse_status_reason(reason);
  if (!count || *count < 0 || *count > latest || !word) return {};
  return cluster_error{*word, cluster_fault::tenant,
                       std::chrono::system_clock::time_point(seconds(*count))};
}

}  // namespace

std::size_t record_slot(std::string_view uid) noexcept {
  return core::string_hash().add(uid).value() % record_slots;
}

std::string record_name(std::size_t slot) {
  constexpr std::string_view digits = "0123456789abcdef";
  static_assert(digits.size() == record_slots);
  return std::string("cluster-state-") + digits[slot];
}

std::string render_record(std::string_view uid, const cluster_record& record) {
  std::string out(uid);
  out += ' ';
  for (std::size_t i = 0; i < record.clusters.size(); ++i) {
    if (i > 0) out += between_clusters;
    out += record.clusters[i];
  }
  if (record.clusters.empty()) out += none;
  if (record.fault) {
    const auto since = std::chrono::floor<seconds>(record.fault->since.time_since_epoch());
    out += " " + std::to_string(since.count()) + " ";
    out += to_string(record.fault->reason);
  }
  return out + '\n';
}

cluster_record_map parse_records(std::string_view text) {
  cluster_record_map out;
  while (!text.empty()) {
    auto line = take(text, '\n');
    const std::string uid(take(line, ' '));
    cluster_record record{.clusters = parse_clusters(take(line, ' '))};
    const auto since = take(line, ' ');
    const auto reason = take(line, ' ');
    if (!since.empty()) record.fault = parse_fault(since, reason);
    const bool whole = since.empty() || record.fault;
    if (!uid.empty() && whole && line.empty()) out[uid] = std::move(record);
  }
  return out;
}

cluster_records::cluster_records(k8s::client& kcp, std::string ns, core::duration interval,
                                 environment in)
    : kcp_(kcp),
      ns_(std::move(ns)),
      interval_(interval),
      environment_(std::move(in)),
      not_kept_(core::make_gauge(environment_.metrics, "rw_watcher_installer_records_not_kept",
                                 "1 while what a new leader must know of the runtimes can't be "
                                 "read or written in KCP")) {}

asio::awaitable<k8s::result<void>> cluster_records::read(std::size_t number) {
  auto& known = slots_[number];
  const auto got = co_await kcp_.get(secrets_type(), {ns_, record_name(number)});
  if (!got && !got.error().is(k8s::errc::not_found)) co_return got.error();
  known = {};
  if (got) {
    known.resource_version = k8s::resource_version_of(*got);
    known.text = k8s::secret_data(*got, records_key).value_or(std::string());
  }
  co_return k8s::result<void>();
}

asio::awaitable<cluster_record_map> cluster_records::load() {
  const auto executor = co_await asio::this_coro::executor;
  const auto timer = environment_.clock.make_timer(executor);
  core::backoff retry(seconds(1), seconds(30), environment_.random);
  cluster_record_map out;
  for (std::size_t number = 0; number < record_slots;) {
    const auto done = co_await read(number);
    set_error(done ? std::nullopt : std::optional(done.error()));
    const bool passes = !done && !k8s::is_permanent(done.error());
    if (!passes) {
      out.merge(parse_records(slots_[number].text));
      ++number;
      continue;
    }
    timer->expires_at(environment_.clock.now() + retry.next());
    const bool due = co_await timer->wait();
    if (!due) throw boost::system::system_error(asio::error::operation_aborted);
  }
  co_return out;
}

asio::awaitable<k8s::result<void>> cluster_records::write(std::size_t number, std::string text) {
  auto& known = slots_[number];
  json::object metadata{{"name", record_name(number)}, {"namespace", ns_}};
  const bool exists = !known.resource_version.empty();
  if (exists) metadata["resourceVersion"] = known.resource_version;
  json::value secret{{"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", std::move(metadata)}};
  k8s::set_secret_data(secret, records_key, text);
  auto request = exists ? kcp_.update(secrets_type(), std::move(secret))
                        : kcp_.create(secrets_type(), std::move(secret));
  const auto written = co_await std::move(request);
  if (written) {
    known.resource_version = k8s::resource_version_of(*written);
    known.text = std::move(text);
    co_return k8s::result<void>();
  }
  // Deleted, or written by another client: what this process knows replaces it at the next turn.
  const auto& error = written.error();
  if (error.is(k8s::errc::conflict) || error.is(k8s::errc::already_exists) ||
      error.is(k8s::errc::not_found)) {
    const auto again = co_await read(number);
    if (!again) co_return again.error();
    known.text.clear();
  }
  co_return error;
}

/// Reads the next Secrets in turn. One that another client has changed or deleted is to be written.
asio::awaitable<k8s::result<void>> cluster_records::check_some() {
  for (std::size_t i = 0; i < checked_at_once; ++i) {
    const auto number = next_check_++ % record_slots;
    auto& known = slots_[number];
    if (known.text.empty()) continue;
    const auto text = known.text;
    const auto done = co_await read(number);
    if (!done) co_return done.error();
    if (known.text != text) changed_ = true;
  }
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> cluster_records::write_changed(
    std::function<void(const visitor&)> visit) {
  std::array<std::vector<std::string>, record_slots> lines;
  visit([&](std::string_view uid, const cluster_record& record) {
    lines[record_slot(uid)].push_back(render_record(uid, record));
  });
  k8s::result<void> out;
  for (std::size_t number = 0; number < record_slots; ++number) {
    std::ranges::sort(lines[number]);
    std::string text;
    for (const auto& line : lines[number]) text += line;
    if (text == slots_[number].text) continue;
    const auto written = co_await write(number, std::move(text));
    if (!written) out = written;
  }
  co_return out;
}

asio::awaitable<void> cluster_records::keep(std::function<void(const visitor&)> visit) {
  const auto executor = co_await asio::this_coro::executor;
  const auto timer = environment_.clock.make_timer(executor);
  for (;;) {
    timer->expires_at(environment_.clock.now() + interval_);
    const bool due = co_await timer->wait();
    if (!due) co_return;
    auto done = co_await check_some();
    if (std::exchange(changed_, false)) {
      const auto written = co_await write_changed(visit);
      changed_ = written.has_error();
      if (!written) done = written;
    }
    set_error(done ? std::nullopt : std::optional(done.error()));
  }
}

void cluster_records::set_error(const std::optional<k8s::failure>& error) {
  not_kept_.Set(error ? 1 : 0);
  if (!error) return not_kept_since_.reset();
  if (not_kept_since_) return;
  not_kept_since_ = environment_.clock.wall();
  environment_.log.warning("what is known of the runtimes can't be kept in KCP for the next leader",
                           {{"namespace", ns_}, {"error", error->message}});
}

}  // namespace rw::watcher_installer
