// The rights to write an object.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/doctor_pre_checks.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::string_view rbac_group = "rbac.authorization.k8s.io";

}  // namespace

asio::awaitable<k8s::result<std::vector<access_right>>> missing_to_write(
    k8s::client* api, written_object of, std::vector<std::string> verbs,
    const std::vector<json::value>* objects) {
  std::vector<access_right> rights;
  for (auto& verb : verbs) {
    rights.push_back({std::move(verb), of.type.gvk.group, of.type.plural, "", of.ns});
  }
  auto out = co_await find_missing(api, std::move(rights));
  if (!out || of.type.gvk.group != rbac_group) co_return out;
  auto granted = granted_rights(*of.object, *objects);
  const auto beyond = co_await find_missing(api, std::move(granted));
  if (!beyond) co_return beyond.error();
  if (beyond->empty()) co_return out;
  // Who lacks what a role grants needs a right to grant it all the same.
  const auto role_kind = k8s::find_string(*of.object, {"roleRef", "kind"});
  access_right special{"escalate", std::string(rbac_group), of.type.plural, "", of.ns};
  if (!role_kind.empty()) {
    special.verb = "bind";
    special.resource = role_kind == "Role" ? "roles" : "clusterroles";
  }
  std::vector<access_right> only{std::move(special)};
  const auto lacking = co_await find_missing(api, std::move(only));
  if (!lacking) co_return lacking.error();
  std::ranges::copy(*lacking, std::back_inserter(*out));
  co_return out;
}

}  // namespace rw::cli
