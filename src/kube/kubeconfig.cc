#include "kube/kubeconfig.h"

#include <utility>

#include <yaml-cpp/yaml.h>

#include "base/base64.h"

namespace edl::kube {
namespace {

namespace fs = std::filesystem;

// Reads the fields of one map and keeps the first error. Ignores unknown fields, because
// kubeconfigs contain those of many programs. This is not JsonFields: a kubeconfig is YAML, whose
// scalars have no type, and errors name the line.
class Fields {
 public:
  Fields(const YAML::Node& node, fs::path folder, std::string where)
      : node_(node), folder_(std::move(folder)), where_(std::move(where)) {
    if (node_.IsDefined() && !node_.IsNull() && !node_.IsMap()) Fail("expected a map", node_);
  }

  const Status& status() const { return status_; }

  std::string Text(const char* name) {
    const YAML::Node field = Get(name);
    if (!Given(field)) return "";
    if (!field.IsScalar()) {
      Fail(fmt::format("'{}': expected a string", name), field);
      return "";
    }
    return field.Scalar();
  }

  bool Bool(const char* name) {
    const std::string text = Text(name);
    if (text == "true" || text.empty() || text == "false") return text == "true";
    Fail(fmt::format("'{}' is '{}'; expected true or false", name, text), Get(name));
    return false;
  }

  std::vector<std::string> List(const char* name) {
    std::vector<std::string> out;
    for (const YAML::Node& item : Items(name)) {
      if (!item.IsScalar()) {
        Fail(fmt::format("'{}': expected a list of strings", name), item);
        return {};
      }
      out.push_back(item.Scalar());
    }
    return out;
  }

  // The items of a list; empty if the field is missing.
  std::vector<YAML::Node> Items(const char* name) {
    const YAML::Node field = Get(name);
    if (!Given(field)) return {};
    if (!field.IsSequence()) {
      Fail(fmt::format("'{}': expected a list", name), field);
      return {};
    }
    return {field.begin(), field.end()};
  }

  fs::path Path(const char* name) {
    const fs::path path = Text(name);
    return path.empty() || path.is_absolute() ? path : folder_ / path;
  }

  // `name` and `name`-data.
  FileOrData File(const char* name) {
    FileOrData out{.file = Path(name)};
    const std::string data_name = fmt::format("{}-data", name);
    const std::string data = Text(data_name.c_str());
    if (data.empty()) return out;
    auto decoded = DecodeBase64(data);
    if (!decoded.ok()) {
      Fail(fmt::format("'{}': {}", data_name, decoded.status().message()), Get(data_name.c_str()));
      return out;
    }
    out.data = std::move(*decoded);
    return out;
  }

  YAML::Node Get(const char* name) const { return node_.IsMap() ? node_[name] : YAML::Node(); }
  // Whether the field exists and is not null.
  static bool Given(const YAML::Node& field) { return field.IsDefined() && !field.IsNull(); }

  // The fields of a map within this one.
  Fields Within(const char* name) const {
    return Fields(Get(name), folder_, fmt::format("{}, {}", where_, name));
  }

  void Fail(const std::string& what, const YAML::Node& at) {
    if (!status_.ok()) return;
    const YAML::Mark mark = at.Mark();
    status_ = InvalidArgument("{}{}: {}", where_,
                              mark.is_null() ? "" : fmt::format(" (line {})", mark.line + 1), what);
  }
  void Take(const Status& status) {
    if (status_.ok()) status_ = status;
  }

 private:
  const YAML::Node node_;
  const fs::path folder_;
  const std::string where_;
  Status status_;
};

KubeconfigCluster ReadCluster(Fields& in) {
  return {.server = in.Text("server"),
          .tls_server_name = in.Text("tls-server-name"),
          .proxy_url = in.Text("proxy-url"),
          .certificate_authority = in.File("certificate-authority"),
          .insecure_skip_tls_verify = in.Bool("insecure-skip-tls-verify")};
}

ExecPlugin ReadExec(Fields& in) {
  ExecPlugin plugin{.command = in.Text("command"),
                    .args = in.List("args"),
                    .api_version = in.Text("apiVersion"),
                    .install_hint = in.Text("installHint"),
                    .provide_cluster_info = in.Bool("provideClusterInfo"),
                    .needs_terminal = in.Text("interactiveMode") == "Always"};
  // A command with a slash is relative to the kubeconfig; a bare name is searched in PATH.
  if (plugin.command.find('/') != std::string::npos) plugin.command = in.Path("command");
  for (const YAML::Node& item : in.Items("env")) {
    Fields entry(item, {}, "an entry of 'env'");
    plugin.env.emplace_back(entry.Text("name"), entry.Text("value"));
    in.Take(entry.status());
  }
  return plugin;
}

KubeconfigUser ReadUser(Fields& in) {
  KubeconfigUser user{
      .token = in.Text("token"),
      .token_file = in.Path("tokenFile"),
      .username = in.Text("username"),
      .password = in.Text("password"),
      .client_certificate = in.File("client-certificate"),
      .client_key = in.File("client-key"),
      .as = {.user = in.Text("as"), .uid = in.Text("as-uid"), .groups = in.List("as-groups")}};
  if (Fields::Given(in.Get("auth-provider"))) {
    Fields provider = in.Within("auth-provider");
    user.auth_provider = provider.Text("name");
    in.Take(provider.status());
  }
  if (Fields::Given(in.Get("exec"))) {
    Fields exec = in.Within("exec");
    user.exec = ReadExec(exec);
    in.Take(exec.status());
  }
  return user;
}

KubeconfigContext ReadContext(Fields& in) {
  return {.cluster = in.Text("cluster"), .user = in.Text("user"), .ns = in.Text("namespace")};
}

// Reads a list of {name: ..., <kind>: {...}}: all three lists of a kubeconfig have this form.
template <typename Entry>
Status ReadNamed(Fields& top, const char* list, const char* kind, const fs::path& file,
                 Entry (*read)(Fields&), std::map<std::string, Entry>& out) {
  for (const YAML::Node& item : top.Items(list)) {
    Fields named(item, file.parent_path(),
                 fmt::format("{}: an entry of '{}'", file.string(), list));
    const std::string name = named.Text("name");
    Fields fields(named.Get(kind), file.parent_path(),
                  fmt::format("{}: {} '{}'", file.string(), kind, name));
    Entry entry = read(fields);
    EDL_RETURN_IF_ERROR(named.status());
    EDL_RETURN_IF_ERROR(fields.status());
    out.try_emplace(name, std::move(entry));
  }
  return top.status();
}

Result<Kubeconfig> Read(const YAML::Node& node, const fs::path& file) {
  Kubeconfig out;
  Fields top(node, file.parent_path(), file.string());
  out.current_context = top.Text("current-context");
  EDL_RETURN_IF_ERROR(ReadNamed(top, "clusters", "cluster", file, ReadCluster, out.clusters));
  EDL_RETURN_IF_ERROR(ReadNamed(top, "users", "user", file, ReadUser, out.users));
  EDL_RETURN_IF_ERROR(ReadNamed(top, "contexts", "context", file, ReadContext, out.contexts));
  return out;
}

}  // namespace

void Kubeconfig::Merge(const Kubeconfig& later) {
  if (current_context.empty()) current_context = later.current_context;
  clusters.insert(later.clusters.begin(), later.clusters.end());
  users.insert(later.users.begin(), later.users.end());
  contexts.insert(later.contexts.begin(), later.contexts.end());
}

Result<Kubeconfig> ParseKubeconfig(std::string_view text, const fs::path& file) {
  try {
    return Read(YAML::Load(std::string(text)), file);
  } catch (const YAML::Exception& e) {
    // yaml-cpp reports errors by exceptions only.
    return InvalidArgument("{} is not YAML (line {}): {}", file.string(), e.mark.line + 1, e.msg);
  }
}

}  // namespace edl::kube
