#include "wire/ring_memory.h"

#include <bit>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace edl::wire {
namespace {

static_assert(std::endian::native == std::endian::little, "rings are little-endian");

constexpr uint64_t kMagic = 0x474E49524C445045;  // "EPDLRING"
constexpr uint32_t kVersion = 1;
// No process can change the size of the file, nor remove these seals.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// The layout in the file.
struct Layout {
  uint64_t magic;
  uint32_t version;
  uint32_t reserved;
  uint64_t capacity;
};
constexpr size_t kControls = 128;
constexpr size_t kBytes = 4096;
static_assert(sizeof(Layout) <= kControls && kControls + 2 * sizeof(RingControl) <= kBytes);

constexpr size_t FileBytes(size_t capacity) { return kBytes + 2 * capacity; }

bool IsCapacity(uint64_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kLeastRingBytes && bytes <= kMostRingBytes;
}

// Checks that an access to the mapping cannot fault: the file is in plain memory and cannot shrink.
Status CheckKind(int file) {
  struct statfs system {};
  if (fstatfs(file, &system) != 0 || system.f_type != TMPFS_MAGIC) {
    return InvalidArgument("the file of a ring is not a memfd with small pages");
  }
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    return InvalidArgument("the memfd of a ring has the seals {:#x}, expected {:#x}", seals,
                           kSeals);
  }
  return Ok();
}

// The capacity in the header of the file.
Result<size_t> CheckLayout(int file) {
  Layout layout{};
  if (pread(file, &layout, sizeof(layout), 0) != sizeof(layout)) {
    return InvalidArgument("the memfd of a ring has no header");
  }
  if (layout.magic != kMagic) {
    return InvalidArgument("the memfd is not a ring: it begins with {:#018x}", layout.magic);
  }
  if (layout.version != kVersion) {
    return InvalidArgument("a ring has version {}, and this process supports version {}",
                           layout.version, kVersion);
  }
  if (!IsCapacity(layout.capacity)) {
    return InvalidArgument("a ring has {} bytes; the capacity must be a power of two from {} to {}",
                           layout.capacity, kLeastRingBytes, kMostRingBytes);
  }
  struct stat state {};
  if (fstat(file, &state) != 0) return Errno("reading the size of the memfd of a ring");
  if (static_cast<uint64_t>(state.st_size) != FileBytes(layout.capacity)) {
    return InvalidArgument("a ring of {} bytes needs a memfd of {} bytes, found {}",
                           layout.capacity, FileBytes(layout.capacity), state.st_size);
  }
  return layout.capacity;
}

}  // namespace

Result<FileDescriptor> MakeRingFile(size_t capacity) {
  if (!IsCapacity(capacity)) {
    return InvalidArgument("a ring has {} bytes; the capacity must be a power of two from {} to {}",
                           capacity, kLeastRingBytes, kMostRingBytes);
  }
  FileDescriptor file(memfd_create("elasticdl-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return Errno("making the memfd of a ring");
  const Layout layout{.magic = kMagic, .version = kVersion, .reserved = 0, .capacity = capacity};
  if (ftruncate(file.get(), static_cast<off_t>(FileBytes(capacity))) != 0 ||
      pwrite(file.get(), &layout, sizeof(layout), 0) != sizeof(layout) ||
      fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return Errno("making the memfd of a ring of {} bytes", capacity);
  }
  return file;
}

Result<RingMemory> RingMemory::Map(const FileDescriptor& file) {
  EDL_RETURN_IF_ERROR(CheckKind(file.get()));
  EDL_ASSIGN_OR_RETURN(const size_t capacity, CheckLayout(file.get()));
  const size_t size = FileBytes(capacity);
  // Not MAP_POPULATE: a connection with little traffic costs little memory.
  void* start = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (start == MAP_FAILED) {
    if (errno == EPERM || errno == EACCES) {
      return InvalidArgument("the memfd of a ring is not writable");
    }
    return Errno("mapping a ring of {} bytes", capacity);
  }
  madvise(start, size, MADV_HUGEPAGE);  // where the host allows it
  return RingMemory({static_cast<std::byte*>(start), Unmap{size}}, capacity);
}

void RingMemory::Unmap::operator()(std::byte* start) const { munmap(start, size); }

RingControl& RingMemory::control(Direction direction) const {
  const size_t at = direction == Direction::kToServer ? 0 : sizeof(RingControl);
  return *reinterpret_cast<RingControl*>(start_.get() + kControls + at);
}

std::span<std::byte> RingMemory::bytes(Direction direction) const {
  const size_t at = direction == Direction::kToServer ? 0 : capacity_;
  return {start_.get() + kBytes + at, capacity_};
}

}  // namespace edl::wire
