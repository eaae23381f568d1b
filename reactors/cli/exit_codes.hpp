#pragma once

/// What the exit codes of commands mean, as their help shows it.
namespace rw::cli {

inline constexpr auto doctor_exit_codes =
    "Exit code   doctor                                   doctor --pre\n"
    "0           no check failed, but for --tolerate      no check failed\n"
    "3           a check failed                           a check failed\n"
    "1           the command failed                       a request to KCP failed\n"
    "2           a flag or the kubeconfig is invalid      the same, or no YAML";

inline constexpr auto diff_exit_codes =
    "Exit code   runtime-watcher diff                     kubectl diff\n"
    "0           nothing differs                          nothing differs\n"
    "1           the command failed                       something differs\n"
    "2           a flag or the kubeconfig is invalid      the command failed\n"
    "3           something differs";

inline constexpr auto status_exit_codes =
    "Exit code\n"
    "0           each runtime that is shown is well, or left out on purpose\n"
    "1           no leader responds, or there is no such Kyma\n"
    "2           a flag or the kubeconfig is invalid\n"
    "3           a runtime that is shown is ill, unknown or under way, whatever the verdict";

inline constexpr auto uninstall_exit_codes =
    "Exit code\n"
    "0           all Kymas are released; the output names runtimes that are left as they are\n"
    "1           the command failed, or a manager kept the Lease\n"
    "2           a flag or the kubeconfig is invalid\n"
    "3           Kymas are left, which the output names";

}  // namespace rw::cli
