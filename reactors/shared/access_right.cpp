#include "rw/reactors/shared/access_right.hpp"

#include "rw/core/gather.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <utility>

namespace rw {

namespace asio = boost::asio;
namespace json = boost::json;

json::value review_of(const access_right& right) {
  json::object attributes{{"verb", right.verb},         {"group", right.group},
                          {"resource", right.resource}, {"subresource", right.subresource},
                          {"namespace", right.ns},      {"name", right.name}};
  json::object spec{{"resourceAttributes", std::move(attributes)}};
  return json::object{{"apiVersion", "authorization.k8s.io/v1"},
                      {"kind", "SelfSubjectAccessReview"},
                      {"spec", std::move(spec)}};
}

bool is_allowed(std::string_view review) {
  const auto read = k8s::read_json(review);
  const auto* const allowed = read ? k8s::find(*read, {"status", "allowed"}) : nullptr;
  return allowed != nullptr && *allowed == true;
}

std::string text_of(const access_right& right) {
  auto out = right.verb + " " + right.resource;
  if (!right.group.empty()) out += "." + right.group;
  if (!right.subresource.empty()) out += "/" + right.subresource;
  if (!right.name.empty()) out += " \"" + right.name + "\"";
  return out + (right.ns.empty() ? " in all namespaces" : " in namespace " + right.ns);
}

asio::awaitable<k8s::result<bool>> has_right(k8s::client& api, access_right right) {
  auto body = json::serialize(review_of(right));
  const auto got =
      co_await api.raw("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                       "application/json", std::move(body));
  if (!got) co_return got.error();
  co_return is_allowed(*got);
}

asio::awaitable<k8s::result<std::vector<access_right>>> find_missing(
    k8s::client* api, std::vector<access_right> rights) {
  std::vector<asio::awaitable<k8s::result<bool>>> reviews;
  for (const auto& right : rights) reviews.push_back(has_right(*api, right));
  const auto answers = co_await core::gather(std::move(reviews));
  std::vector<access_right> out;
  for (std::size_t i = 0; i < rights.size(); ++i) {
    if (!answers[i]) co_return answers[i].error();
    if (!*answers[i]) out.push_back(std::move(rights[i]));
  }
  co_return out;
}

}  // namespace rw
