#pragma once

#include <string>
#include <string_view>

#include "kube/object.h"
#include "kube/resource.h"

namespace edl::kube {

// Where the server has a collection ("/api/v1/namespaces/default/pods"), one object of it, or a
// part of that ("status", "log"). An empty namespace: the collection of all of them.
std::string PathOf(const Resource& resource, const std::string& ns);
std::string PathOf(const Resource& resource, const ObjectKey& key, std::string_view subresource);

// What follows a path: "?limit=500&labelSelector=a%3Db".
class Query {
 public:
  // Leaves out what is empty.
  Query& Add(std::string_view name, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace edl::kube
