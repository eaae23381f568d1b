#include "reactors/bootstrapper/runtime_store.hpp"

#include "k8s/types.hpp"
#include "reactors/bootstrapper/manifest_set.hpp"
#include "reactors/bootstrapper/problem.hpp"
#include "reactors/bootstrapper/record_seal.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::string_view content_entry = "content";
constexpr std::string_view seal_entry = "seal";
/// On the pieces of a set: its short digest.
constexpr std::string_view set_label = "operator.kyma-project.io/bootstrapper-set";

json::value secret_of(const std::string& ns, std::string_view name, std::string_view content) {
  json::value out{{"apiVersion", "v1"},
                  {"kind", "Secret"},
                  {"metadata", {{"name", name}, {"namespace", ns}}},
                  {"type", "Opaque"}};
  k8s::set_secret_data(out, content_entry, content);
  return out;
}

}  // namespace

std::string runtime_store::piece_name(std::string_view digest, std::size_t number) const {
  return std::string(reserved_prefix) + short_digest(digest) + "-" + std::to_string(number);
}

asio::awaitable<k8s::result<std::optional<sync_record>>> runtime_store::read() {
  const k8s::object_key key{ns_, std::string(record_name)};
  const std::optional<sync_record> foreign(sync_record{.foreign = true});
  const auto got = co_await with_.api().get(secrets_type(), key);
  if (!got && got.error().is(k8s::errc::not_found)) co_return std::optional<sync_record>();
  if (!got) co_return got.error();
  const auto text = k8s::secret_data(*got, content_entry).value_or(std::string());
  const auto seal = k8s::secret_data(*got, seal_entry).value_or(std::string());
  if (!is_sealed(seal, key_, subject_, text)) co_return foreign;
  problems unused;
  const auto value = parse_json(text, {unused, {}});
  auto record = value ? read_record(*value) : std::nullopt;
  if (record) co_return record;
  co_return foreign;
}

asio::awaitable<k8s::result<void>> runtime_store::write(sync_record record) {
  const auto text = json::serialize(write_record(record));
  auto object = secret_of(ns_, record_name, text);
  k8s::set_secret_data(object, seal_entry, seal_of(key_, subject_, text));
  const auto done = co_await with_.apply(secrets_type(), std::move(object));
  if (!done) co_return done.error();
  co_return k8s::result<void>();
}

asio::awaitable<k8s::result<void>> runtime_store::forget() {
  k8s::object_key key{ns_, std::string(record_name)};
  auto done = co_await with_.remove(secrets_type(), std::move(key));
  co_return done;
}

asio::awaitable<k8s::result<std::size_t>> runtime_store::keep(known_set set) {
  const auto text = write_set(set);
  if (text.size() > most) {
    co_return k8s::failure{.code = k8s::errc::too_large,
                           .message = "the set has " + std::to_string(text.size()) +
                                      " bytes, more than the " + std::to_string(most) +
                                      " that can be kept for a return to it"};
  }
  std::size_t parts = 0;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    auto object =
        secret_of(ns_, piece_name(set.digest, parts), std::string_view(text).substr(at, piece));
    k8s::set_label(object, set_label, short_digest(set.digest));
    const auto done = co_await with_.apply(secrets_type(), std::move(object));
    if (!done) co_return done.error();
    ++parts;
  }
  co_return parts;
}

asio::awaitable<k8s::result<std::optional<known_set>>> runtime_store::load(std::string digest,
                                                                           std::size_t parts) {
  std::string text;
  for (std::size_t i = 0; i < parts; ++i) {
    k8s::object_key key{ns_, piece_name(digest, i)};
    const auto got = co_await with_.api().get(secrets_type(), std::move(key));
    if (!got && got.error().is(k8s::errc::not_found)) co_return std::optional<known_set>();
    if (!got) co_return got.error();
    text += k8s::secret_data(*got, content_entry).value_or(std::string());
  }
  co_return read_set(text, digest);
}

asio::awaitable<k8s::result<void>> runtime_store::drop_others(std::string digest) {
  k8s::selection what{.ns = ns_, .labels = std::string(set_label), .metadata_only = true};
  const auto list = co_await with_.api().list(secrets_type(), std::move(what));
  if (!list) co_return list.error();
  const auto* const items = k8s::find(*list, {"items"});
  if (items == nullptr || !items->is_array()) co_return k8s::result<void>();
  for (const auto& one : items->get_array()) {
    if (!digest.empty() && k8s::label(one, set_label) == short_digest(digest)) continue;
    auto key = k8s::key_of(one);
    if (!key.name.starts_with(reserved_prefix)) continue;
    const auto done = co_await with_.remove(secrets_type(), std::move(key));
    if (!done) co_return done.error();
  }
  co_return k8s::result<void>();
}

}  // namespace rw::bootstrapper
