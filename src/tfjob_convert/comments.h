#pragma once

#include <string_view>

namespace edl::tfjob_convert {

// Whether YAML has a comment. A '#' in quotes or in a block scalar is not one.
bool HasComment(std::string_view yaml);

}  // namespace edl::tfjob_convert
