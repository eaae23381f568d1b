// What the next pass would write to a runtime, by the decisions and the sync of a pass.

#include "rw/core/within.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/direct_sync.hpp"

#include <memory>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;

/// Adds what a unit does not get, and why.
void note_unit(unit of, const unit_state& state, pass_preview& out) {
  const auto name = "unit " + std::string(to_string(of));
  // What would be written of valid sources is not known.
  const auto add_error = [&](const std::string& text) {
    out.error += (out.error.empty() ? "" : "; ") + text;
  };
  if (!state.invalid.empty()) add_error(name + ": " + state.invalid);
  if (state.withheld) {
    out.waits.push_back(awaits_turn(name, "bootstrapper"));
    out.awaits_turn = true;
  }
  if (state.rejected) out.waits.push_back(name + ": " + state.rejected->message);
  if (state.failed) add_error(state.failed->message);
  for (const auto& [source, fate] : state.missing) {
    out.waits.push_back(name + ": " + source + " does not exist; " + fate);
  }
  for (const auto& each : state.warnings) out.waits.push_back(name + ": " + each);
}

}  // namespace

asio::awaitable<pass_preview> direct_sync::preview(k8s::object_key key, core::duration time_limit) {
  pass in{.to = {.key = key}, .is_preview = true};
  pass_preview out{.component = "bootstrapper"};
  const auto facts = kcp_.facts_of(key);
  in.input.mode = facts.mode;
  in.input.decided = decide(facts, options_.create_for_runtimes);
  const auto& decided = in.input.decided;
  if (!decided.message.empty()) out.waits.push_back(decided.message);
  if (decided.next == action::create) {
    out.waits.emplace_back("a RuntimeBootstrapper is created in KCP; the pass after that writes");
  }
  const bool has_writes = decided.next == action::preview || decided.next == action::sync ||
                          decided.next == action::undeploy || decided.next == action::release;
  if (!has_writes) co_return out;
  if (!in.direct() && decided.next == action::preview) {
    out.waits.emplace_back("the runtime's mode is shadow: nothing is written");
  }
  in.resource = writer_.newest(sources_.bootstrappers.objects().get(key));
  const preview_writes writes;
  auto sync = preview_sync(&in, writes);
  const auto until = environment_.clock.now() + time_limit;
  const auto ended = co_await core::within(environment_.clock, until, std::move(sync));
  for (const auto of : all_units) note_unit(of, in.input.state.at(of), out);
  co_return complete(std::move(out), writes, ended);
}

asio::awaitable<k8s::result<void>> direct_sync::preview_release(const pass* in,
                                                                preview_writes writes) {
  const auto opted_out = co_await opt_out(in, environment_.kcp.previewing(writes.kcp));
  if (!opted_out) co_return opted_out.error();
  const auto released =
      co_await writer_.try_release(in->resource, std::string(finalizer), writes.kcp);
  co_return released;
}

asio::awaitable<k8s::result<void>> direct_sync::preview_sync(pass* in, preview_writes writes) {
  const auto key = in->to.key;
  const auto next = in->input.decided.next;
  auto& state = in->input.state;
  if (next == action::release) {
    const auto released = co_await preview_release(in, writes);
    co_return released;
  }
  if (next == action::undeploy) {
    state = read_state(in->resource);
  } else if (const auto ended = co_await resolve(in)) {
    co_return k8s::failure{
        .code = k8s::errc::conflict,
        .message = ended->text.empty() ? "the content in KCP is being changed" : ended->text};
  }
  auto api =
      co_await contact_for_preview(kcp_.client_name(key), kcp_.kubeconfig_of(key), writes.runtime);
  if (!api) co_return api.error();
  std::function<bool()> may_write = [this, key, next] { return may(key, next); };
  if (next == action::undeploy) {
    const auto removed = co_await bootstrapper::undeploy(std::move(*api), &options_.apply,
                                                         state.objects, std::move(may_write));
    if (!removed) co_return removed.error();
    const auto released = co_await preview_release(in, writes);
    co_return released;
  }
  skip_rejected(in);
  sync_request request{
      .to = options_.to, .adopt = in->view.adopt, .may_write = std::move(may_write)};
  auto done =
      co_await bootstrapper::sync(std::move(*api), &options_.apply, std::move(request), &state);
  co_return done;
}

}  // namespace rw::bootstrapper
