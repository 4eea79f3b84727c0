#include "backend/local/sandbox.h"

#include <algorithm>
#include <filesystem>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/local/own_process.h"

namespace edl::backend::local {
namespace {

namespace fs = std::filesystem;

fs::path SourceOf(const job::Volume& volume) {
  return volume.sub_path.empty() ? fs::path(volume.host_path)
                                 : fs::path(volume.host_path) / volume.sub_path;
}

enum class FileKind { kFile, kDirectory };

Status Create(const fs::path& path, FileKind kind, const std::string& what) {
  const bool directory = kind == FileKind::kDirectory;
  std::error_code error;
  fs::create_directories(directory ? path : path.parent_path(), error);
  if (error) return StatusFromErrno(error.value(), "creating " + what);
  if (directory) return Ok();
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  return file.valid() ? Ok() : Errno("creating {}", what);
}

// Creates the host path if its type allows that, and checks its type.
Status PrepareSource(const job::Volume& volume) {
  using Type = job::HostPathType;
  const Type type = volume.type;
  const std::string what = "host_path " + volume.host_path;
  struct stat status {};
  if (stat(volume.host_path.c_str(), &status) != 0) {
    if (errno != ENOENT) return Errno("reading the metadata of {}", what);
    if (type != Type::kDirectoryOrCreate && type != Type::kFileOrCreate) {
      return NotFound(
          "{} of the volume at {} does not exist; create it, or let it be created with "
          "type=DirectoryOrCreate",
          what, volume.mount_path);
    }
    const auto kind = type == Type::kDirectoryOrCreate ? FileKind::kDirectory : FileKind::kFile;
    EDL_RETURN_IF_ERROR(Create(volume.host_path, kind, what));
    if (stat(volume.host_path.c_str(), &status) != 0)
      return Errno("reading the metadata of {}", what);
  }
  const bool wants_directory =
      type == Type::kDirectory || type == Type::kDirectoryOrCreate || !volume.sub_path.empty();
  const bool wants_file = type == Type::kFile || type == Type::kFileOrCreate;
  const bool wrong = (wants_directory && !S_ISDIR(status.st_mode)) ||
                     (wants_file && !S_ISREG(status.st_mode)) ||
                     (type == Type::kSocket && !S_ISSOCK(status.st_mode)) ||
                     (type == Type::kCharDevice && !S_ISCHR(status.st_mode)) ||
                     (type == Type::kBlockDevice && !S_ISBLK(status.st_mode));
  if (wrong) {
    return FailedPrecondition("{} of the volume at {} is not of type {}", what, volume.mount_path,
                              NameOf(type == Type::kAny ? Type::kDirectory : type));
  }
  if (!volume.sub_path.empty() && !fs::exists(SourceOf(volume))) {
    return Create(SourceOf(volume), FileKind::kDirectory, "sub_path " + SourceOf(volume).string());
  }
  return Ok();
}

Status MountPointRefused(const job::Volume& volume, const Status& why) {
  return Status(
      why.code(),
      fmt::format("the volume's mount point {} is missing and this user may not create it "
                  "({}); create it once (sudo mkdir -p {}), or choose a mount_path that "
                  "you may write to, or run as root",
                  volume.mount_path, why.message(), volume.mount_path));
}

Status MountOne(const job::Volume& volume, int source) {
  struct stat status {};
  if (fstat(source, &status) != 0) return Errno("reading the metadata of {}", volume.host_path);
  std::error_code ignored;
  if (!fs::exists(volume.mount_path, ignored)) {
    const auto kind = S_ISDIR(status.st_mode) ? FileKind::kDirectory : FileKind::kFile;
    const Status made = Create(volume.mount_path, kind, "the mount point " + volume.mount_path);
    if (!made.ok()) return MountPointRefused(volume, made);
  }
  const std::string by_descriptor = fmt::format("/proc/self/fd/{}", source);
  // Recursive: an unprivileged user may not separate a mount from those below it.
  if (mount(by_descriptor.c_str(), volume.mount_path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) !=
      0) {
    return Errno("mounting {} at {}", SourceOf(volume).string(), volume.mount_path);
  }
  return Ok();
}

bool IsInPlace(const job::Volume& volume) {
  std::error_code error;
  return fs::equivalent(SourceOf(volume), volume.mount_path, error) && !error;
}

}  // namespace

int Namespaces::clone_flags() const {
  return (user ? CLONE_NEWUSER : 0) | (pid ? CLONE_NEWPID : 0) | (mount ? CLONE_NEWNS : 0);
}

std::vector<Namespaces> NamespacesToTry(Isolation at_most,
                                        const std::vector<job::Volume>& volumes) {
  std::vector<Namespaces> tries;
  if (at_most == Isolation::kNamespaces) {
    tries.push_back({.user = false, .pid = true, .mount = true});
    tries.push_back({.user = true, .pid = true, .mount = true});
    if (!volumes.empty()) {
      // In containers that hide parts of /proc, a new /proc cannot be mounted, but volumes can.
      tries.push_back({.user = false, .pid = false, .mount = true});
      tries.push_back({.user = true, .pid = false, .mount = true});
    }
  }
  tries.push_back({});
  return tries;
}

Status EnterNamespaces(const Namespaces& namespaces, Identity identity) {
  if (namespaces.user) {
    const auto map = [](auto id) { return fmt::format("{} {} 1", id, id); };
    EDL_RETURN_IF_ERROR(WriteValue("/proc/self/setgroups", "deny"));
    EDL_RETURN_IF_ERROR(WriteValue("/proc/self/uid_map", map(identity.user)));
    EDL_RETURN_IF_ERROR(WriteValue("/proc/self/gid_map", map(identity.group)));
  }
  // Slave, not private: later mounts of the machine become visible here, but not the other way
  // round.
  if (namespaces.mount && mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
    return Errno("keeping mounts inside the namespace");
  }
  if (namespaces.pid &&
      mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return Errno("mounting /proc");
  }
  return Ok();
}

Status CheckVolumes(const std::vector<job::Volume>& volumes) {
  for (const job::Volume& volume : volumes) {
    if (!volume.claim_name.empty()) {
      return InvalidArgument(
          "the volume at {} names the claim {}: claims exist only on Kubernetes; use host_path= "
          "instead",
          volume.mount_path, volume.claim_name);
    }
    if (volume.host_path.empty()) {
      return InvalidArgument("the volume at {} has no host_path; give one", volume.mount_path);
    }
    if (!fs::path(volume.mount_path).is_absolute()) {
      return InvalidArgument("mount_path '{}' must begin with /", volume.mount_path);
    }
    const fs::path sub(volume.sub_path);
    if (sub.is_absolute() || std::find(sub.begin(), sub.end(), "..") != sub.end()) {
      return InvalidArgument("sub_path '{}' must stay below its host_path", volume.sub_path);
    }
  }
  return Ok();
}

Status MountVolumes(const std::vector<job::Volume>& volumes, MountAccess access) {
  EDL_RETURN_IF_ERROR(CheckVolumes(volumes));
  // Opens all sources before the first mount, which may hide another source.
  std::vector<FileDescriptor> sources;
  for (const job::Volume& volume : volumes) {
    EDL_RETURN_IF_ERROR(PrepareSource(volume));
    sources.emplace_back(open(SourceOf(volume).c_str(), O_PATH | O_CLOEXEC));
    if (!sources.back().valid()) return Errno("opening {}", SourceOf(volume).string());
  }
  for (size_t n = 0; n < volumes.size(); ++n) {
    const job::Volume& volume = volumes[n];
    if (IsInPlace(volume)) continue;
    if (access == MountAccess::kNone) {
      return PermissionDenied(
          "this user may not mount {} at {} here; run as root, or allow user "
          "namespaces, or make {} a symbolic link to {}",
          SourceOf(volume).string(), volume.mount_path, volume.mount_path,
          SourceOf(volume).string());
    }
    EDL_RETURN_IF_ERROR(MountOne(volume, sources[n].get()));
  }
  return Ok();
}

}  // namespace edl::backend::local
