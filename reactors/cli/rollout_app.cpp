#include "rw/reactors/cli/rollout_app.hpp"

#include "rw/k8s/objects/label_selector.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/invalid_sources.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"
#include "rw/reactors/cli/kcp_commands.hpp"
#include "rw/reactors/cli/kcp_error.hpp"
#include "rw/reactors/cli/leader_settings.hpp"
#include "rw/reactors/cli/rollout_plan.hpp"
#include "rw/reactors/cli/rollout_text.hpp"
#include "rw/reactors/cli/yaml_text.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"
#include "rw/reactors/shared/cluster_state.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <iterator>
#include <set>
#include <stdexcept>
#include <unistd.h>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using runtime_rollout::runtime_rollouts_type;

/// Why a request for RuntimeRollouts has failed, and what to do.
std::string error_of(const k8s::failure& failed, const kcp_access& kcp, const char* verb,
                     const std::string& name = {}) {
  const auto type = runtime_rollouts_type();
  const auto text = text_of(
      describe(failed, {verb, type.gvk.group, type.plural, "", std::string(kcp_namespace), name},
               "see `runtime-watcher doctor`: " + when_created(name)));
  return with_kcp_flags(text, kcp);
}

}  // namespace

rollout_app::rollout_app(services& with, rollout_settings settings)
    : app(with),
      settings_(std::move(settings)),
      kcp_(std::make_unique<k8s::client>(
          with.executor, load_kcp_config(settings_.kcp),
          k8s::client_options{.name = "kcp",
                              .user_agent = "runtime-watcher-rollout",
                              .field_manager = std::string(default_field_manager)},
          with.for_client())),
      output_(with.executor, STDOUT_FILENO),
      errors_(with.executor, STDERR_FILENO) {}

rollout_app::~rollout_app() = default;

asio::awaitable<void> rollout_app::say(std::string line) {
  co_await output_.write(std::move(line) + "\n");
}

/// As kubectl separates documents; one of JSON is a line.
asio::awaitable<void> rollout_app::show(json::value document) {
  const bool yaml = settings_.format == "yaml";
  auto text = yaml ? yaml_text(document) : json::serialize(document) + "\n";
  if (std::exchange(shown_, true) && yaml) text.insert(0, "---\n");
  co_await output_.write(std::move(text));
}

/// An empty line is between two tables.
asio::awaitable<void> rollout_app::show_table(std::string table) {
  if (std::exchange(shown_, true)) table.insert(0, "\n");
  co_await output_.write(std::move(table));
}

/// The one of the component, or all. Throws if there is none.
asio::awaitable<std::vector<json::value>> rollout_app::read_all() {
  std::vector<json::value> out;
  if (!settings_.component.empty()) {
    auto got = co_await kcp_->get(runtime_rollouts_type(),
                                  {std::string(kcp_namespace), settings_.component});
    if (!got)
      throw std::runtime_error(error_of(got.error(), settings_.kcp, "get", settings_.component));
    out.push_back(std::move(*got));
    co_return out;
  }
  auto list = co_await kcp_->list(runtime_rollouts_type(), {.ns = std::string(kcp_namespace)});
  if (!list) throw std::runtime_error(error_of(list.error(), settings_.kcp, "list"));
  for (auto& each : list->at("items").as_array()) out.push_back(std::move(each));
  if (out.empty()) {
    throw std::runtime_error("No RuntimeRollouts found in " + std::string(kcp_namespace) +
                             " namespace.");
  }
  co_return out;
}

/// "; " and which sources of the bootstrapper are invalid, or nothing.
asio::awaitable<std::string> rollout_app::read_invalid_sources() {
  const auto list = co_await kcp_->list(bootstrapper::runtime_bootstrappers_type(),
                                        {.ns = std::string(kcp_namespace)});
  const auto* const items = list ? k8s::find_array(*list, {"items"}) : nullptr;
  bootstrapper::invalid_sources invalid;
  for (const auto& each : items == nullptr ? json::array() : *items) invalid.note(each);
  std::string out;
  for (const auto& each : invalid.faults()) out.append("; ").append(each.message);
  co_return out;
}

asio::awaitable<int> rollout_app::follow(std::string name) {
  std::vector<source_version> sources;
  for (const auto& each : settings_.sources) sources.push_back(*parse_source_version(each));
  const auto pause = services_.clock.make_timer(services_.executor);
  const auto begin = services_.clock.now();
  const auto end = begin + settings_.timeout;
  const k8s::object_key key{std::string(kcp_namespace), std::move(name)};
  std::string printed;
  std::string invalid;
  auto next_read = begin;  // of `invalid`
  for (;;) {
    const auto got = co_await kcp_->get(runtime_rollouts_type(), key);
    if (!got) throw std::runtime_error(error_of(got.error(), settings_.kcp, "get", key.name));
    // Runtimes whose sources are invalid take no part.
    const bool none =
        key.name == "bootstrapper" && k8s::find_number(*got, {"status", "updated"}) <= 0;
    if (!none) {
      invalid.clear();
      next_read = begin;
    }
    const bool done = report_of(*got, sources, "").is == rollout_report::outcome::done;
    if (none && (done || services_.clock.now() >= next_read)) {
      invalid = co_await read_invalid_sources();
      // Thousands of objects, which change less and less often.
      const auto now = services_.clock.now();
      next_read = now + std::min<core::duration>(now - begin, std::chrono::seconds(30));
    }
    auto report = report_of(*got, sources, invalid);
    report.line = with_kcp_flags(report.line, settings_.kcp);
    report.next = with_kcp_flags(report.next, settings_.kcp);
    const bool failed = report.is == rollout_report::outcome::failed;
    const bool changed = report.line != std::exchange(printed, report.line);
    if (changed && settings_.format != "text") {
      co_await show(report_document(*got, report));
    } else if (changed && !failed) {
      co_await say(report.line);
    }
    if (failed) {
      co_await errors_.write("error: " + text_of(kcp_error{report.line, report.next}) + "\n");
      co_return 1;
    }
    if (!settings_.watch || report.is == rollout_report::outcome::done) co_return 0;
    if (settings_.timeout.count() > 0 && services_.clock.now() >= end) {
      co_await errors_.write("error: timed out waiting for the condition\n");
      co_return 1;
    }
    pause->expires_at(services_.clock.now() + settings_.interval);
    const bool due = co_await pause->wait();
    if (!due) co_return 1;
  }
}

/// The runtimes that take part in a roll-out, with uid and labels.
asio::awaitable<json::array> rollout_app::read_runtimes(const json::value* rollout) {
  const k8s::selection all{.ns = std::string(kcp_namespace)};
  const bool watcher = k8s::key_of(*rollout).name == "watcher";
  // Without its Lease, its defaults.
  const manager_settings usual;
  const auto leader =
      co_await read_leader_settings(kcp_.get(), usual.lease_namespace, usual.lease_name);
  auto listed = co_await kcp_->list(watcher ? kymas_type() : runtimes_type(), all);
  if (!listed) throw std::runtime_error(listed.error().message);
  auto& runtimes = listed->at("items").as_array();
  json::array out;
  if (watcher) {
    const auto only = *k8s::label_selector::parse(leader.only);
    std::ranges::copy_if(runtimes, std::back_inserter(out), [&](const json::value& kyma) {
      return !k8s::is_being_deleted(kyma) && scope_of(kyma, only) == cluster_scope::managed;
    });
    co_return out;
  }
  const auto written = co_await kcp_->list(bootstrapper::runtime_bootstrappers_type(), all);
  if (!written) throw std::runtime_error(written.error().message);
  std::set<std::string> names;
  for (const auto& each : written->at("items").as_array()) {
    if (takes_part(each, leader.usual)) names.insert(k8s::key_of(each).name);
  }
  std::ranges::copy_if(runtimes, std::back_inserter(out), [&](const json::value& runtime) {
    return names.contains(k8s::key_of(runtime).name);
  });
  co_return out;
}

/// Pauses, resumes, ends a bake, or pins a revision.
asio::awaitable<int> rollout_app::change(const json::value* rollout) {
  using verb = rollout_settings::verb;
  const auto key = k8s::key_of(*rollout);
  std::string error;
  json::value change{{"spec", {{"revision", nullptr}}}};
  std::string done = " rolled back";
  if (settings_.command == verb::pause) {
    change = pause_change(*rollout, error);
    done = " paused";
  } else if (settings_.command == verb::resume) {
    change = resume_change(*rollout, k8s::format_micro_time(services_.clock.wall()), error);
    done = " resumed";
  } else if (settings_.command == verb::promote) {
    change = promote_change(*rollout, k8s::format_micro_time(services_.clock.wall()), error);
    done = " promoted";
  } else if (!settings_.to_sources) {
    change = undo_change(*rollout, settings_.to_revision, error);
  } else if (k8s::find_string(*rollout, {"spec", "revision"}).empty()) {
    error = to_string(runtime_rollouts_type()) + " \"" + key.name +
            "\" has no revision pinned: its sources are rolled out";
  } else {
    done = " follows its sources again";
  }
  error = with_kcp_flags(error, settings_.kcp);
  if (change.is_object() && change.get_object().empty()) {
    done = " skipped rollback (current content already matches revision " + settings_.to_revision +
           ")";
  } else if (error.empty()) {
    const auto patched = co_await kcp_->patch(runtime_rollouts_type(), key, k8s::patch_type::merge,
                                              std::move(change));
    if (!patched) error = error_of(patched.error(), settings_.kcp, "patch", key.name);
  }
  if (!error.empty()) {
    co_await errors_.write("error: " + error + "\n");
    co_return 1;
  }
  co_await say("runtimerollout.operator.kyma-project.io/" + key.name + done);
  co_return 0;
}

asio::awaitable<int> rollout_app::act() {
  const auto all = co_await read_all();
  int code = 0;
  for (const auto& each : all) {
    switch (settings_.command) {
      case rollout_settings::verb::status: {
        const auto done = co_await follow(k8s::key_of(each).name);
        code = std::max(code, done);
        break;
      }
      case rollout_settings::verb::history:
        if (settings_.format == "text") {
          co_await show_table(history_of(each));
        } else {
          co_await show(history_document(each));
        }
        break;
      case rollout_settings::verb::plan: {
        const auto runtimes = co_await read_runtimes(&each);
        co_await show_table(plan_of(each, runtimes));
        break;
      }
      case rollout_settings::verb::pause:
      case rollout_settings::verb::resume:
      case rollout_settings::verb::promote:
      case rollout_settings::verb::undo: {
        const auto done = co_await change(&each);
        code = std::max(code, done);
        break;
      }
    }
  }
  co_return code;
}

asio::awaitable<int> rollout_app::run() {
  auto code = co_await run_to_end(act(), kcp_->close());
  co_return code;
}

}  // namespace rw::cli
