// Whether KCP takes each object of the manifests from whoever installs.

#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/doctor_pre_checks.hpp"
#include "rw/reactors/cli/shell_word.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using enum finding_state;

constexpr std::string_view app_label = "app.kubernetes.io/name";
constexpr std::string_view installer_role = "runtime-watcher-installer";

std::string title_of(const json::value& object) {
  return std::string(k8s::find_string(object, {"kind"})) + " " +
         k8s::to_string(k8s::key_of(object));
}

/// The clients that own fields of the object, without repetition.
std::string managers_of(const json::value& object) {
  std::set<std::string> names;
  const auto* const all = k8s::find_array(object, {"metadata", "managedFields"});
  for (const auto& each : all == nullptr ? json::array() : *all) {
    names.emplace(k8s::find_string(each, {"manager"}));
  }
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "an unknown client" : out;
}

/// Returns the first quoted text after `before`; nothing if there is none.
std::string_view quoted_after(std::string_view before, std::string_view text) {
  const auto begin = text.find(std::string(before) + " \"");
  if (begin == text.npos) return {};
  text.remove_prefix(begin + before.size() + 2);
  return text.substr(0, text.find('"'));
}

/// The user whom an API server refuses a request: User "alice" cannot create ...
std::string user_in(std::string_view message) {
  return std::string(quoted_after("User", message));
}

/// An earlier installation by the same tools: kubectl and helm take fields over from each other.
bool is_installer(std::string_view manager) {
  return manager.starts_with("kubectl") || manager.starts_with("helm") || manager == "Helm";
}

/// The conflicts with other clients than those: "spec.replicas of autoscaler"; empty: none.
std::string foreign_conflicts(const k8s::failure& error) {
  std::string out;
  for (const auto& cause : error.causes) {
    const auto manager = quoted_after("conflict with", cause.message);
    if (is_installer(manager)) continue;
    out += (out.empty() ? "" : ", ") + cause.field + " of " + std::string(manager);
  }
  return out;
}

/// Likewise of a dry run: KCP says whatever it has against the object, also that a webhook failed.
void expect_verdict(const k8s::failure& error) {
  const bool is_verdict = error.is(k8s::errc::conflict) || error.is(k8s::errc::server_error) ||
                          k8s::is_permanent(error);
  if (!is_verdict) expect_response(error);
}

struct object_kind {
  k8s::resource_type type;
  bool is_served = false;
};

class manifest_check {
 public:
  explicit manifest_check(pre_context& with) : shared_(with) {}

  asio::awaitable<void> check_namespaces();
  asio::awaitable<void> check_objects();

 private:
  template <class T>
  using work = asio::awaitable<T>;

  work<void> check_object(const json::value* object);
  work<std::optional<object_kind>> find_kind(const json::value* object);
  work<k8s::result<bool>> check_owner(const object_kind* of, const json::value* object);
  work<k8s::result<json::value>> try_to_apply(const object_kind* of, const json::value* object);
  work<bool> report_rejection(const json::value* object, k8s::failure error);
  work<void> report_missing_rights();
  std::string apply_command(const json::value& object) const;

  pre_context& shared_;
  std::map<std::string, bool> namespaces_;                    ///< whether each may exist
  std::map<std::string, std::vector<access_right>> missing_;  ///< rights, by namespace
  std::size_t accepted_ = 0;                                  ///< objects by a dry run
  std::size_t reviewed_ = 0;                                  ///< objects by a review of rights
};

/// The command that applies the object, and takes its fields over from other clients.
std::string manifest_check::apply_command(const json::value& object) const {
  std::string out = "kubectl apply --server-side --force-conflicts";
  const auto& files = shared_.settings.manifests;
  for (const auto& file : files) out += " -f " + shell_word(file);
  if (std::ranges::find(files, "-") != files.end()) out.insert(0, "with the same input: ");
  if (!files.empty()) return out;
  const bool defines = k8s::find_string(object, {"kind"}) == "CustomResourceDefinition";
  return out + (defines ? " -f deploy/crds" : " -k deploy/manager");
}

asio::awaitable<void> manifest_check::check_namespaces() {
  shared_.journal.begin("namespaces");
  std::set<std::string> created;
  std::set<std::string> needed{std::string(kcp_namespace),
                               shared_.planned.settings.istio_namespace};
  for (const auto& object : shared_.objects) {
    const auto key = k8s::key_of(object);
    if (k8s::find_string(object, {"kind"}) == "Namespace") created.insert(key.name);
    if (!key.ns.empty()) needed.insert(key.ns);
  }
  std::string missing;
  std::string command;
  for (const auto& name : needed) {
    const auto got = co_await shared_.kcp.get(namespaces_type(), {{}, name}, true);
    if (!got) expect_response(got.error());
    // What may not be read may exist: a dry run shows it.
    namespaces_[name] = got || !got.error().is(k8s::errc::not_found);
    if (namespaces_[name] || created.contains(name)) continue;
    missing += (missing.empty() ? "" : ", ") + name;
    command += (command.empty() ? "" : " && ") + ("kubectl create namespace " + shell_word(name));
  }
  if (missing.empty()) {
    co_await shared_.journal.report(
        {proven, "namespaces", "all namespaces exist, or are part of the manifests"});
  } else {
    co_await shared_.journal.report(
        {failed, "namespaces", "missing: " + missing, std::move(command)});
  }
}

/// Finds the resource of an object; reports a kind that KCP does not know and no manifest defines.
asio::awaitable<std::optional<object_kind>> manifest_check::find_kind(const json::value* object) {
  k8s::group_version_kind gvk;
  gvk.kind = k8s::find_string(*object, {"kind"});
  k8s::parse_api_version(k8s::find_string(*object, {"apiVersion"}), gvk);
  const auto found = co_await shared_.kcp.find(gvk);
  if (found) co_return object_kind{*found, true};
  expect_response(found.error());
  if (found.error().is(k8s::errc::not_found)) {
    if (auto defined = find_definition(shared_.objects, gvk))
      co_return object_kind{std::move(*defined)};
  }
  co_await shared_.journal.report(
      {failed, "manifests", title_of(*object) + ": " + found.error().message,
       "install what defines " + gvk.kind + ", or leave it out of the manifests"});
  co_return std::nullopt;
}

/// Returns true if nobody else has an object of that name, and reports it otherwise.
asio::awaitable<k8s::result<bool>> manifest_check::check_owner(const object_kind* of,
                                                               const json::value* object) {
  const auto app = k8s::label(*object, app_label);
  const auto key = k8s::key_of(*object);
  const auto live = co_await shared_.kcp.get(of->type, key);
  if (!live && live.error().is(k8s::errc::not_found)) co_return true;
  if (!live) {
    expect_response(live.error());
    co_return live.error();
  }
  if (app.empty() || k8s::label(*live, app_label) == app) co_return true;
  if (of->type == namespaces_type()) co_return true;  // it may be prepared for the installation
  auto text = title_of(*object) + " exists without the label " + std::string(app_label) + "=" +
              std::string(app) + ", written by " + managers_of(*live);
  for (const auto& owner : k8s::owners_of(*live)) {
    text += ", of " + owner.kind + " " + owner.name;
  }
  auto command = "if it is not needed: kubectl " +
                 (key.ns.empty() ? std::string() : "-n " + key.ns + " ") + "delete " +
                 k8s::to_string(of->type) + " " + shell_word(key.name);
  co_await shared_.journal.report({failed, "names", std::move(text), std::move(command)});
  co_return false;
}

/// A dry run of the object. What earlier installations own is taken over.
asio::awaitable<k8s::result<json::value>> manifest_check::try_to_apply(const object_kind* of,
                                                                       const json::value* object) {
  k8s::apply_options options{.dry_run = true};
  auto tried = co_await shared_.kcp.apply(of->type, *object, options);
  const bool conflicts = !tried && tried.error().is(k8s::errc::conflict);
  if (!conflicts || !foreign_conflicts(tried.error()).empty()) co_return tried;
  options.force = true;
  tried = co_await shared_.kcp.apply(of->type, *object, options);
  co_return tried;
}

/// Reports what a dry run of the object has shown, but for missing rights and objects. Returns true
/// if that is all.
asio::awaitable<bool> manifest_check::report_rejection(const json::value* object,
                                                       k8s::failure error) {
  if (error.is(k8s::errc::conflict)) {
    co_await shared_.journal.report(
        {failed, "names",
         title_of(*object) + " has fields of other clients: " + foreign_conflicts(error),
         apply_command(*object)});
    co_return true;
  }
  // Not found are the role of a binding, and a namespace that may not be read.
  if (error.is(k8s::errc::forbidden) || error.is(k8s::errc::not_found)) co_return false;
  co_await shared_.journal.report({failed, "manifests", title_of(*object) + ": " + error.message,
                                   "correct the manifest, or what KCP admits objects by"});
  co_return true;
}

asio::awaitable<void> manifest_check::check_object(const json::value* object) {
  const auto of = co_await find_kind(object);
  if (!of) co_return;
  const auto ns = of->type.namespaced ? k8s::key_of(*object).ns : std::string();
  std::optional<k8s::failure> error;
  if (of->is_served && (ns.empty() || namespaces_[ns])) {
    const auto is_ours = co_await check_owner(&*of, object);
    if (is_ours && !*is_ours) co_return;
    const auto tried = co_await try_to_apply(&*of, object);
    if (tried && is_ours) {
      ++accepted_;
      co_return;
    }
    if (!tried) {
      error = tried.error();
      expect_verdict(*error);
      const bool is_reported = co_await report_rejection(object, *error);
      if (is_reported) co_return;
    }
  }
  if (error && shared_.user.empty()) shared_.user = user_in(error->message);
  const written_object written{object, of->type, ns};
  const std::vector<std::string> verbs{"get", "create", "patch"};
  const auto lacking = co_await missing_to_write(&shared_.kcp, written, verbs, &shared_.objects);
  if (!lacking) throw std::runtime_error("KCP: " + lacking.error().message);
  std::ranges::copy(*lacking, std::back_inserter(missing_[ns]));
  if (!lacking->empty()) co_return;
  if (!error || error->is(k8s::errc::not_found)) {
    ++reviewed_;
    co_return;
  }
  co_await shared_.journal.report(
      {failed, "manifests", title_of(*object) + ": " + error->message,
       "see what KCP admits objects by: kubectl get "
       "validatingwebhookconfigurations,mutatingwebhookconfigurations"});
}

/// One line for each namespace, and for the cluster.
asio::awaitable<void> manifest_check::report_missing_rights() {
  const auto user = shared_.user.empty() ? std::string("the kubeconfig's user") : shared_.user;
  bool all = true;
  for (const auto& [ns, rights] : missing_) {
    if (rights.empty()) continue;
    all = false;
    const auto place = ns.empty() ? std::string("the cluster") : "namespace " + ns;
    co_await shared_.journal.report(
        {failed, "rights", user + " may not, in " + place + ": " + text_of(rights),
         std::string(as_administrator) + grant_command(shared_.user, installer_role, rights)});
  }
  if (!all) co_return;
  co_await shared_.journal.report(
      {proven, "rights", user + " may write the objects of the manifests"});
}

asio::awaitable<void> manifest_check::check_objects() {
  for (std::size_t i = 0; i < shared_.objects.size(); ++i) {
    shared_.journal.begin("manifests: " + std::to_string(i + 1) + " of " +
                          std::to_string(shared_.objects.size()));
    co_await check_object(&shared_.objects[i]);
  }
  co_await report_missing_rights();
  const auto count = accepted_ + reviewed_;
  if (count < shared_.objects.size()) co_return;
  auto text = "KCP accepts " + std::to_string(accepted_) + " objects in a dry run";
  if (reviewed_ > 0) {
    text += "; " + std::to_string(reviewed_) +
            " can't be tried before their namespaces, kinds or roles exist";
  }
  co_await shared_.journal.report({proven, "manifests", std::move(text)});
}

}  // namespace

asio::awaitable<void> check_manifests(pre_context* with) {
  manifest_check check(*with);
  co_await check.check_namespaces();
  co_await check.check_objects();
}

}  // namespace rw::cli
