#include "kube/api_path.h"

#include "kube/text.h"

namespace edl::kube {

std::string PathOf(const Resource& resource, const std::string& name_space) {
  std::string path = (resource.group.empty() ? "/api/" : "/apis/") + resource.api_version();
  if (resource.namespaced && !name_space.empty()) path += "/namespaces/" + UrlEncoded(name_space);
  path += '/';
  path += resource.plural;
  return path;
}

std::string PathOf(const Resource& resource, const ObjectKey& key, std::string_view subresource) {
  std::string path = PathOf(resource, key.name_space) + "/" + UrlEncoded(key.name);
  if (!subresource.empty()) {
    path += '/';
    path += subresource;
  }
  return path;
}

Query& Query::Add(std::string_view name, std::string_view value) {
  if (value.empty()) return *this;
  text_ += text_.empty() ? '?' : '&';
  text_ += name;
  text_ += '=';
  text_ += UrlEncoded(value);
  return *this;
}

}  // namespace edl::kube
