#include "kube/api_path.h"

#include "kube/text.h"

namespace edl::kube {

std::string PathOf(const Resource& resource, const std::string& ns) {
  std::string path = (resource.group.empty() ? "/api/" : "/apis/") + resource.api_version();
  if (resource.namespaced && !ns.empty()) path += "/namespaces/" + UrlEncoded(ns);
  path += '/';
  path += resource.plural;
  return path;
}

std::string PathOf(const Resource& resource, const ObjectKey& key, std::string_view subresource) {
  std::string path = PathOf(resource, key.ns) + "/" + UrlEncoded(key.name);
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
