#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rw::k8s::devserver {

/// A quantity in the form in which kube-apiserver returns it (apimachinery, "Quantity"): "0.1" is
/// "100m", "1024Mi" is "1Gi". `whole_millis` rounds up to thousandths, as those of resource lists
/// are. Nothing if the text is no quantity.
std::optional<std::string> canonical_quantity(std::string_view text, bool whole_millis);

/// Orders two quantities. Texts that are none are 0.
int compare_quantities(std::string_view a, std::string_view b);

}  // namespace rw::k8s::devserver
