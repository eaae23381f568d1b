#!/usr/bin/env python3
"""Shows that the tests notice bugs: plants each fault in a copy of the sources, one at a time, builds the suite that is to notice
it, and prints which cases fail. The faults of simulation/planted/ are planted by planted.sh there. Ends with 1 if a fault
stays unnoticed, or no longer fits the sources. By hand: not part of CI.

  tests/planted.py [--here] [--fits] [FAULT...]     such as: token_bucket xfcc_twice; `differential` are all of the embedded API
                                                    server, which are compared with kube-apiserver (KUBEBUILDER_ASSETS)

  --here   plants in this tree itself, whose build is warm, and takes each fault out again
  --fits   only checks that each fault fits
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIMIT = 900  # seconds of one suite, which a fault may let hang

# Name, file, what stands there, what is planted, and the suite that notices it: folder of tests/unit and suite.
FAULTS = (
    ("backoff_limit", "core/backoff.cpp", "result > limit / 2 ? limit : result * 2", "result * 2", "core.backoff"),
    ("breaker_counts_old_attempts", "core/circuit_breaker.hpp", "if (began != epoch_) return false;", "if (began > epoch_) return false;", "core.circuit_breaker"),
    ("token_bucket_takes_too_late", "core/token_bucket.hpp", "if (wait > most) return std::nullopt;",
     "if (wait > 2 * most) return std::nullopt;", "core.token_bucket"),
    ("handshake_evicts_the_newest", "core/http/memory_policy.cpp", "each->number_ < own.oldest->number_", "each->number_ > own.oldest->number_",
     "http.memory_policy"),
    ("certificate_never_expires", "tls/certificate.hpp", " && time <= not_after()", "", "tls.certificate"),
    ("xfcc_twice", "tls/xfcc.cpp", "return chains_ < 2;", "return true;", "tls.xfcc"),
    ("fence_stays_open", "k8s/client/fence.hpp", "void shut() noexcept { open_until(core::time_point::min()); }", "void shut() noexcept {}",
     "k8s.attempts"),
    ("true_and_absent_are_equal", "k8s/objects/difference.cpp", "return !value.get_bool();", "return true;", "k8s.difference"),
    ("rollout_hears_of_itself", "reactors/runtime_rollout/runtime_rollout.cpp", "if (asks_the_same(change)) return decide_soon();",
     "if (asks_the_same(change)) return out.push_back(key_);",
     "runtime_rollout.restart"),
    ("changed_spec_waits", "reactors/runtime_rollout/runtime_rollout.cpp", "k8s::generation_of(before) == k8s::generation_of(now)", "true",
     "runtime_rollout.restart"),
    ("answers_fields_are_kept", "k8s/client/session.cpp", "out.limits.header_table = 0;", "", "k8s.connections"),
    ("old_watch_version_goes_on", "k8s/cache/reflector.cpp", "if (error.is(errc::gone)) return at_once_or_pause(then::list, error);",
     "", "k8s.reflector"),
    ("late_renewal_counts", "k8s/controller/election.cpp", "if (now >= gained_ + options_.renew_deadline) return lose(now);", "",
     "k8s.election"),
    ("domain_is_not_compared", "reactors/intake/san_pinning.cpp", "names(from.certificate, *domain);", "(names(from.certificate, *domain) || true);",
     "intake.san_pinning"),
    ("escapes_are_read_as_they_stand", "reactors/shared/event_json.cpp", "|| c == '\\\\'; });", "; });", "intake.event_json"),
    ("batch_as_written_has_any_length", "reactors/shared/event_json.cpp", "if (into.size() == max_events) return false;", "",
     "intake.event_json"),
    ("rejected_pull_secret_is_no_longer_begun", "reactors/bootstrapper/sync.cpp",
     "(begun && state.applied.empty());", "(begun && false);", "runtime_config.contents"),
    ("names_as_written_have_any_length", "reactors/shared/event_json.cpp", "skip(from, behind) && !flaw_of(event);",
     "skip(from, behind);", "intake.event_json"),
    ("share_without_bound", "reactors/intake/fair_queue.cpp", "if (own >= runtime_events_) return offer_result::share_full;",
     "if (own > runtime_events_) return offer_result::share_full;", "intake.fair_queue"),
    ("resync_tells_its_latest_reason", "reactors/intake/resync_turns.cpp", "pending = std::max(*pending, reason);", "pending = reason;",
     "intake.resync_turns"),
    ("resync_is_lost_in_its_minute", "reactors/intake/resync_turns.cpp", "    if (turn->second.pending) {", "    if (turn->second.pending && false) {",
     "intake.resync_turns"),
    ("resyncs_before_all_events", "reactors/intake/listener.cpp", "      turn_of_events_ = true;", "      turn_of_events_ = false;",
     "intake.resyncs"),
    ("large_fleet_is_forgotten", "reactors/shared/most_runtimes.hpp", "32'768", "16'384", "intake.kyma_router"),
    ("router_without_interval", "reactors/intake/kyma_router.cpp", "next = now + options_.interval;", "next = now;", "intake.kyma_router"),
    ("silence_is_noticed_late", "reactors/heartbeat/health.cpp", "if (at.now - runtime.heard < limit) continue;",
     "if (at.now - runtime.heard < 2 * limit) continue;", "heartbeat.health"),
    ("losses_of_former_leaders_are_told_again", "reactors/heartbeat/losses.cpp", "return age < floor<microseconds>(arrival - time);",
     "return age >= microseconds::zero() || age < floor<microseconds>(arrival - time);", "heartbeat.losses"),
    ("issuer_at_work_is_asked_again", "reactors/certificates/renewal.cpp", 'if (asked || state == "Pending") return true;', "if (asked) return true;",
     "certificates.renewal"),
    ("hosts_twice", "reactors/watcher_controller/virtual_service.cpp", "if (!contains(hosts, host)) hosts.emplace_back(host);",
     "if (contains(hosts, host) || true) hosts.emplace_back(host);", "watcher_controller.virtual_service"),
    ("status_is_always_written", "reactors/watcher_controller/watcher_status.cpp", "if (before != nullptr && *before == made) return std::nullopt;",
     "if (before != nullptr && before->is_null()) return std::nullopt;", "watcher_controller.watcher_status"),
    ("old_certificate_goes_at_once", "reactors/watcher_installer/trust.cpp",
     "now < *has.certificate_since + delays.retirement", "now + delays.retirement < *has.certificate_since", "watcher_installer.trust"),
    ("suspended_is_written", "reactors/bootstrapper/decision.cpp", 'if (facts.suspended) return {action::wait, "Suspended"_reason, "spec.suspend is true"};',
     "", "bootstrapper.decision"),
    ("expired_bundle_is_valid", "reactors/bootstrapper/validation.cpp", "if (expired == certificates.size())", "if (expired > certificates.size())",
     "bootstrapper.validation"),
    ("half_written_runtime_stays", "reactors/bootstrapper/sync.cpp", "    if (std::ranges::none_of(plan->objects, &planned_object::write) && obsolete.empty()) {",
     "    if (out_.at(of).withheld || (std::ranges::none_of(plan->objects, &planned_object::write) && obsolete.empty())) {", "runtime_config.history"),
    ("missing_source_is_not_said", "reactors/bootstrapper/status.cpp", "{{valid && !missing.empty(),", "{{false,", "runtime_config.history"),
    ("rejection_outlasts_its_reason", "reactors/bootstrapper/rejections.cpp", "const bool may_accept = unseen || drift_.changed(key);", "const bool may_accept = unseen && false;",
     "runtime_config.history"),
    ("rejection_outlasts_a_cut", "reactors/bootstrapper/rejections.cpp", "options_.watch_runtimes && expected.versions.empty();", "false;", "bootstrapper.direct"),
    ("superseded_turn_goes_on", "reactors/bootstrapper/direct_sync.cpp", "if (!has_lost_turn(*in, of, to)) return true;", "if (has_lost_turn(*in, of, to) || true) return true;", "bootstrapper.rollout"),
    ("superseded_removal_goes_on", "reactors/bootstrapper/direct_rollout.cpp", "if (of == unit::credentials && !removes) return false;",
     "if (of == unit::credentials || removes) return false;", "bootstrapper.rollout"),
    ("replaced_source_ends_no_turn", "reactors/bootstrapper/direct_rollout.cpp", "in.admitted != usual_.current().digest || ", "", "bootstrapper.rollout"),
    ("turn_that_has_ended_is_recorded", "reactors/bootstrapper/sync.cpp", "    if (!may_begin()) co_return fenced();\n", "", "bootstrapper.sync"),
    ("recording_outlasts_the_turn", "reactors/bootstrapper/sync.cpp", "    if (!may_begin()) co_return fenced();  // recording it takes its time\n", "", "bootstrapper.sync"),
    ("other_content_ends_no_turn", "reactors/runtime_rollout/runtime_rollout.cpp", "if (content != content_.digest || (", "if ((", "runtime_rollout.restart"),
    ("pin_ends_no_turn", "reactors/runtime_rollout/runtime_rollout.cpp", " || (!pinned_.empty() && content != pinned_)", "", "runtime_rollout.restart"),
    ("deployment_outlasts_the_turn", "reactors/watcher_installer/installation.cpp", "if (!out_.awaits_turn) replaces_ = in_place;", "", "watcher_installer.rollout"),
    ("not_stored_is_not_said", "reactors/runtime_rollout/runtime_rollout.cpp", "decided.not_stored = not_stored->message;", "",
     "runtime_config.history"),
    ("soak_waits_for_the_calendar", "reactors/runtime_rollout/runtime_rollout.cpp", "  hold_to_the_clock();\n", "", "runtime_config.history"),
    ("unstored_content_waits_for_the_resync", "reactors/bootstrapper/direct_sync.cpp",
     "if (each.not_stored) again = std::min(again, with_jitter(options_.resync_period / 10));", "", "runtime_config.contents"),
    ("unstored_pull_secret_goes_back", "reactors/bootstrapper/revision_source.cpp", "all.clear();", "", "runtime_config.contents"),
    ("unlisted_pull_secret_goes_back", "reactors/bootstrapper/direct_sync.cpp", "if (!stored) co_return stored.error();", "",
     "runtime_config.contents"),
    ("unlisted_pull_secret_is_an_earlier_one", "reactors/bootstrapper/revision_source.cpp", "if (digest != listed && (digest == before || stored_.is_earlier(source, digest))) continue;",
     "if (digest != listed) continue;", "runtime_config.contents"),
    ("rejected_pull_secret_is_forgotten", "reactors/bootstrapper/sync.cpp", "if (of != unit::credentials) out_.at(of).contents = {};",
     "out_.at(of).contents = {};", "runtime_config.contents"),
    ("half_written_is_forgotten_with_its_content", "reactors/bootstrapper/status.cpp", "(unit.failed || unit.kept || unit.lost)",
     "(unit.failed || unit.kept)", "runtime_config.contents"),
    ("earlier_contents_are_not_read", "reactors/shared/content_store.cpp", "out.earlier.emplace_back(each.get_string());", "out.earlier.clear();",
     "bootstrapper.content_store"),
    ("credentials_of_kim_go_back", "reactors/bootstrapper/sync.cpp", "if (!state.sourceless || !has_other_credentials(plan, options_)) return false;",
     "if (!state.sourceless || has_other_credentials(plan, options_)) return false;", "bootstrapper.direct"),
    ("rejected_rotation_goes_back", "reactors/bootstrapper/sync.cpp", "if (!older || desired.digest == state.newer) return false;",
     "if (older) return false;", "runtime_config.contents"),
    ("clock_set_back_hides_new_content", "reactors/runtime_rollout/runtime_rollout.cpp", "(next.in_place != known.in_place || begins_anew(known.is, next.is));",
     "begins_anew(known.is, next.is);", "runtime_config.calendar"),
    ("failed_request_rejects_content", "reactors/bootstrapper/status.cpp", 'now.failed && phase == "Applying") error', "now.failed) error",
     "bootstrapper.status"),
    ("withdrawn_returns_at_once", "reactors/config_sync/runtime_signal.cpp", "if (seen.withdrawn && !returned_at_) returned_at_ = at.now;", "",
     "config_sync.runtime_signal"),
    ("rollout_ignores_the_budget", "reactors/runtime_rollout/decision.cpp", "if (unavailable >= allowed) return;",
     "if (unavailable > allowed) return;", "runtime_rollout.decision"),
    ("replaced_canary_goes_first", "reactors/runtime_rollout/decision.cpp", "if (!begun && canaries_ >= most) continue;",
     "", "runtime_rollout.decision"),
    ("rollout_is_decided_at_each_report", "reactors/runtime_rollout/runtime_rollout.cpp", "if (next != known || inspects_) decide_soon();",
     "decide_soon();", "runtime_rollout.restart"),
    ("rollout_step_does_not_bake", "reactors/runtime_rollout/decision.cpp", "const auto until = *next.settled + bake;",
     "const auto until = *next.settled;", "runtime_rollout.model"),
    ("rollout_verification_passes", "reactors/runtime_rollout/decision.cpp", "if (!of_.verified->passed) {",
     "if (of_.verified->text.empty()) {", "runtime_rollout.model"),
    ("pin_renders_the_newest", "reactors/watcher_installer/watcher_installer.cpp", "if (wanted->digest == content_.pinned()) order->pinned = wanted;",
     "", "watcher_installer.rollout"),
    ("pin_of_any_wire_version", "reactors/runtime_rollout/resource.cpp", "if (kept->wire_version != 0 &&", "if (false &&", "runtime_rollout.resource"),
    ("mutation_is_not_missed", "reactors/bootstrapper/mutation_proof.cpp", "if (missing) out +=", "if (false && missing) out +=",
     "bootstrapper.mutation_proof"),
    ("pull_secret_is_listed_after_its_write", "reactors/bootstrapper/direct_sync.cpp",
     "if (of == unit::credentials && first) {", "if (of != unit::credentials && first) {", "runtime_config.contents"),
    ("refused_repair_is_ready", "reactors/bootstrapper/state.hpp", " && !unrepaired", "", "runtime_config.history"),
    ("refused_repair_is_updated", "reactors/runtime_rollout/decision.hpp", "return updated() && rejected;", "return false;",
     "runtime_rollout.decision"),
    ("silence_hides_a_refusal", "reactors/bootstrapper/status.cpp", "  const auto phase = find_string(*unit, {\"phase\"});\n  const auto message",
     "  if (!observed) return out;\n  const auto phase = find_string(*unit, {\"phase\"});\n  const auto message", "bootstrapper.status"),
    ("root_of_the_future_signs", "reactors/gateway_secret/rotation.cpp", "if (root.not_before() > exact_) {", "if (false) {",
     "gateway_secret.rotation"),
    ("page_is_for_everybody", "reactors/admin/admin.cpp", "if (!is_loopback(from.peer.address.address())) {", "if (false) {", "admin.admin"),
    ("any_holder_is_a_pod", "reactors/cli/leader_secret.cpp", "  if (!k8s::dns_subdomain_errors(pod).empty()) return std::nullopt;\n", "",
     "cli.leader_secret"),
    ("history_is_not_compacted", "reactors/shared/fleet_history.cpp", "  while (!minutes_.empty() && minutes_.front().minute < first) minutes_.pop_front();\n",
     "", "cli.fleet_history"),
    ("next_leader_begins_anew", "reactors/shared/fleet_history.cpp", "if (each.minute < own_first) all.push_back(each);",
     "if (each.minute > own_first) all.push_back(each);", "cli.fleet_history"),
    ("restored_changes_come_last", "reactors/shared/fleet_history.cpp", "{&earlier.changes_, &std::as_const(own)}",
     "{&std::as_const(own), &earlier.changes_}", "cli.fleet_history"),
    ("minute_has_its_last_level", "reactors/shared/fleet_history.cpp", "if (severity(sample.level) > severity(into.level))",
     "if (severity(sample.level) >= 0)", "cli.fleet_history"),
    ("events_of_an_object_without_bound", "reactors/shared/recent_events.cpp", "} else if (all.size() == max_of_object) {", "} else if (false) {",
     "cli.recent_events"),
    ("old_verdict_is_read", "reactors/shared/fleet_verdict.cpp", "if (age > verdict_expiry) {", "if (age > 2 * verdict_expiry) {", "cli.fleet_verdict"),
    ("permits_without_bound", "reactors/runtime_controller/permits.cpp", "if (used_ < count_) {", "if (used_ < count_ + 1) {",
     "runtime_controller.permits"),
    ("gateway_serves_any_host", "reactors/dev/gateway/routes.cpp", "return http::iequals(name, host);", "return true;", "dev_gateway.routes"),
    ("issuer_takes_any_key", "reactors/dev/issuer/order.cpp", 'if (!algorithm.empty() && algorithm != "RSA") return std::nullopt;', "",
     "dev_issuer.order"),
)

# The same of the embedded API server, which tests/conformance/differential is to notice in a run of OPERATIONS.
OPERATIONS = 2000
DIFFERENTIAL = (
    ("forced_apply_takes_nothing", "k8s/devserver/managed_fields.cpp", "    manager.fields.subtract(shared);\n", ""),
    ("apply_never_conflicts", "k8s/devserver/managed_fields.cpp", "auto refused = force ? field_set() : shared;", "field_set refused;"),
    ("field_no_longer_applied_stays", "k8s/devserver/managed_fields.cpp", "if (last.empty()) return;", "return;"),
    ("emptied_map_is_not_shared", "k8s/devserver/typed_fields.cpp", "if (!atomic && whole) node.unite(at_path());",
     "if (!atomic && whole && path_.empty()) node.unite(at_path());"),
    ("applied_types_are_not_checked", "k8s/devserver/typed_fields.cpp", "if (type == nullptr || value.is_null()) return {};", "if (true) return {};"),
    ("target_port_without_default", "k8s/devserver/builtin_defaults.cpp", 'set_default(port, "targetPort", json::value(*number));',
     'set_default(port, "targetport", json::value(*number));'),
    ("default_is_always_pulled", "k8s/devserver/builtin_defaults.cpp", 'moves ? "Always" : "IfNotPresent"', 'moves ? "Always" : "Always"'),
    ("unknown_field_stays", "k8s/devserver/schema_node.cpp", "      removed.push_back(below(path, name));\n      field = fields.stable_erase(field);",
     "      removed.push_back(below(path, name));\n      ++field;"),
    ("zero_value_is_written", "k8s/devserver/builtin_decoding.cpp", "at->value().is_null() ||\n                                       is_omitted(*field, at->value()));",
     "at->value().is_null());"),
    ("quantity_keeps_its_text", "k8s/devserver/builtin_decoding.cpp", "    value = std::move(*canonical);\n", ""),
    ("label_is_not_validated", "k8s/devserver/object_meta.cpp", "if (labels == nullptr || !labels->is_object()) return;",
     "if (labels == nullptr || labels->is_object()) return;"),
    ("service_without_ports", "k8s/devserver/services.cpp", 'if (count == 0 && has_address(object) && address != "None")', "if (false)"),
    ("null_does_not_remove", "k8s/devserver/strategic_merge_patch.cpp", "    target.stable_erase(name);\n    return {};", "    return {};"),
    ("merge_patch_keeps_what_is_null", "k8s/devserver/merge_patch.cpp", "into.stable_erase(name);", "into[name];"),
    ("test_of_a_json_patch_passes", "k8s/devserver/json_patch.cpp", 'if (*kind == "test") return test(*to, value);', 'if (*kind == "test") return true;'),
    ("finalizer_does_not_hold", "k8s/devserver/delete_plan.cpp", "if (names.empty() && !holds_content", "if (!holds_content"),
    ("foreground_deletes_at_once", "k8s/devserver/delete_plan.cpp", 'want("foregroundDeletion", with.propagation == "Foreground");', ""),
    ("precondition_is_ignored", "k8s/devserver/delete_plan.cpp", "if (!with.uid.empty() && with.uid != uid)", "if (false)"),
    ("old_version_is_accepted", "k8s/devserver/write_rules.cpp", 'if (asked != find_string(before, {"metadata", "resourceVersion"})) {',
     'if (asked.size() > 99 && asked != find_string(before, {"metadata", "resourceVersion"})) {'),
    ("page_has_one_more", "k8s/devserver/page.cpp", "result.items.size() == options->limit", "result.items.size() > options->limit"),
    ("update_writes_the_status", "k8s/devserver/write_rules.cpp", 'if (to.view.version->status) keep(fields, "status", field_of(before, {"status"}));', ""),
    ("generation_does_not_count", "k8s/devserver/write_plan.cpp", ".value_or(0) + 1;\n  }\n  good = check_object(to, old, object);",
     ".value_or(0);\n  }\n  good = check_object(to, old, object);"),
    ("dry_run_is_stored", "k8s/devserver/writes.cpp", "if (request.context.dry_run) {", "if (false) {"),
    ("label_selector_selects_all", "k8s/devserver/page.cpp", "if (selection.matches(**at))", "if (true)"),
)


def plant(tree, name, path, old, new):
    """The text before; None if the fault does not fit, which is said."""
    text = (tree / path).read_text()
    if old not in text:
        print(f"{name}: does not fit {path}")
        return None
    (tree / path).write_text(text.replace(old, new, 1))
    return text


def notice_by_comparison(tree):
    """The fields that differ from kube-apiserver, or what else happens."""
    built = subprocess.run(["cmake", "--build", "build", "--target", "kube-devserver"], cwd=tree, text=True, capture_output=True)
    if built.returncode != 0:
        return "does not compile: " + next((line for line in built.stdout.splitlines() if "error:" in line), "")
    try:
        done = subprocess.run([sys.executable, "-B", ROOT / "tests/conformance/differential/differential.py", f"--operations={OPERATIONS}"],
                              text=True, capture_output=True, timeout=LIMIT, env=os.environ | {"RW_DOOR": str(tree / "build/envtest")})
    except subprocess.TimeoutExpired:
        return "the comparison hangs"
    if done.returncode == 77:
        return "NOT NOTICED: no KUBEBUILDER_ASSETS to compare with"
    found = re.findall(r"^ *(\d+) (\w+ \| .*)", done.stdout, re.M)
    shown = ", ".join(f"{path} ({count})" for count, path in found[:2]) + (f" and {len(found) - 2} more" if len(found) > 2 else "")
    return shown or ("" if done.returncode == 0 else "NOT NOTICED: the comparison itself fails, " + (done.stderr.splitlines() or [""])[-1])


def notice(tree, suite):
    """The cases that fail, or what else happens."""
    if suite == "differential":
        return notice_by_comparison(tree)
    folder, _, name = suite.partition(".")
    built = subprocess.run(["cmake", "--build", "build", "--target", f"{folder}_tests"], cwd=tree, text=True, capture_output=True)
    if built.returncode != 0:
        return "does not compile: " + next((line for line in built.stdout.splitlines() if "error:" in line), "")
    try:
        done = subprocess.run([tree / "build" / "tests" / f"{folder}_tests", f"--run_test={name}"], cwd=tree, text=True,
                              capture_output=True, timeout=LIMIT, env=os.environ | {"RW_CONFIG_HISTORY_SEEDS": "500"})
    except subprocess.TimeoutExpired:
        return "the suite hangs"
    failed = re.findall(rf'error: in "{name}/(\w+)', done.stdout + done.stderr)
    seed = re.search(r"RW_CONFIG_HISTORY_FIRST=(\d+)", done.stdout + done.stderr)
    if seed:
        failed.append(f"after {seed[1]} histories")
    return ", ".join(dict.fromkeys(failed)) or ("" if done.returncode == 0 else f"the suite ends with {done.returncode}")


def main(arguments):
    if {"-h", "--help"} & set(arguments):
        print(__doc__)
        return 0
    every = FAULTS + tuple((*fault, "differential") for fault in DIFFERENTIAL)
    unknown = set(arguments) - {"--here", "--fits"} - {fault[0] for fault in every} - {"differential"}
    if unknown:
        print(f"planted.py: unknown {', '.join(sorted(unknown))}; see --help", file=sys.stderr)
        return 2
    chosen = [fault for fault in every if {fault[0], fault[-1]} & set(arguments) or all(each.startswith("--") for each in arguments)]
    with tempfile.TemporaryDirectory() as scratch:
        tree = ROOT if "--here" in arguments or "--fits" in arguments else pathlib.Path(scratch)
        if tree != ROOT:
            subprocess.run(f"git -C '{ROOT}' archive HEAD | tar x -C '{tree}' && cd '{tree}' && cmake --preset release", shell=True, check=True,
                           stdout=subprocess.DEVNULL)
        missed = 0
        for name, path, old, new, suite in chosen:
            before = plant(tree, name, path, old, new)
            if before is None:
                missed += 1
                continue
            try:
                found = "fits" if "--fits" in arguments else notice(tree, suite)
            finally:
                (tree / path).write_text(before)
            missed += not found or found.startswith(("does not compile", "NOT NOTICED"))
            print(f"{name}: {found or 'NOT NOTICED'}" + ("" if found == "fits" else f" ({suite})"), flush=True)
        print(f"{len(chosen)} faults, {missed} not noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
