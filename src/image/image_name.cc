#include "image/image_name.h"

#include <algorithm>

namespace edl::image {
namespace {

bool IsLower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsWord(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z') || c == '_'; }

bool HasUpper(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

// True for lower-case letters and digits with separators only between them.
bool IsPathPart(std::string_view part) {
  if (part.empty() || !IsLower(part.front()) || !IsLower(part.back())) return false;
  return std::all_of(part.begin(), part.end(),
                     [](char c) { return IsLower(c) || c == '.' || c == '_' || c == '-'; });
}

bool IsTag(std::string_view tag) {
  return !tag.empty() && tag.size() <= 128 && IsWord(tag.front()) &&
         std::all_of(tag.begin(), tag.end(),
                     [](char c) { return IsWord(c) || c == '.' || c == '-'; });
}

bool IsHost(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return IsWord(c) || c == '.' || c == '-' || c == ':' || c == '[' || c == ']';
  });
}

// Whether the part before the first slash is a host and not part of the path.
bool LooksLikeHost(std::string_view text) {
  return text == "localhost" || text.find_first_of(".:") != std::string_view::npos ||
         HasUpper(text);
}

Status CheckPath(std::string_view text, std::string_view path) {
  for (std::string_view rest = path; true;) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (!IsPathPart(part)) {
      return InvalidArgument(
          "'{}' is not an image name: '{}' must be lower-case letters and digits, with '.', '_' "
          "and '-' between them{}",
          text, part, HasUpper(part) ? "; upper-case letters are not allowed" : "");
    }
    if (slash == std::string_view::npos) return Ok();
    rest.remove_prefix(slash + 1);
  }
}

}  // namespace

std::string ImageName::Full() const {
  std::string out = host + "/" + path;
  if (!tag.empty()) out += ":" + tag;
  if (!digest.empty()) out += "@" + digest;
  return out;
}

Result<ImageName> ParseImageName(std::string_view text) {
  ImageName name;
  std::string_view rest = text;
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    name.digest = rest.substr(at + 1);
    rest = rest.substr(0, at);
    if (name.digest.find(':') == std::string::npos) {
      return InvalidArgument("'{}' is not an image name: '{}' is not a digest such as sha256:12ab",
                             text, name.digest);
    }
  }
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos && LooksLikeHost(rest.substr(0, slash))) {
    name.host = rest.substr(0, slash);
    rest.remove_prefix(slash + 1);
    if (!IsHost(name.host)) {
      return InvalidArgument("'{}' is not an image name: '{}' is not a host", text, name.host);
    }
  } else {
    name.host = "docker.io";
  }
  if (const size_t colon = rest.rfind(':'); colon != std::string_view::npos) {
    name.tag = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (!IsTag(name.tag)) {
      return InvalidArgument(
          "'{}' is not an image name: the tag '{}' must be letters, digits, '_', '.' and '-'", text,
          name.tag);
    }
  } else if (name.digest.empty()) {
    name.tag = "latest";
  }
  EDL_RETURN_IF_ERROR(CheckPath(text, rest));
  name.path = rest;
  if (name.host == "docker.io" && name.path.find('/') == std::string::npos) {
    name.path = "library/" + name.path;
  }
  return name;
}

}  // namespace edl::image
