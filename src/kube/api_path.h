#pragma once

#include <string>
#include <string_view>

#include "kube/object.h"
#include "kube/resource.h"

namespace edl::kube {

// The URL path of a collection ("/api/v1/namespaces/default/pods"), of one object in it, or of a
// subresource of that object ("status", "log"). An empty namespace means the collection across all
// namespaces.
std::string PathOf(const Resource& resource, const std::string& ns);
std::string PathOf(const Resource& resource, const ObjectKey& key, std::string_view subresource);

// The query of a URL: "?limit=500&labelSelector=a%3Db".
class Query {
 public:
  // Adds nothing when `value` is empty.
  Query& Add(std::string_view name, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace edl::kube
