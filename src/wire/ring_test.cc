#include "wire/ring.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/status_matchers.h"
#include "wire/socket.h"
#include "wire/testing/sockets.h"
#include "wire/testing/traffic.h"

// Here the other end is made by hand, from docs/formats/wire.md.
namespace edl::wire {
namespace {

using testing::HasSubstr;

constexpr size_t kCapacity = 4096;
constexpr size_t kBytesAt = 4096;
// What the client writes of its own.
constexpr size_t kToServerWrittenAt = 128;
constexpr size_t kToClientReadAt = 640 + 128;
// What the server does.
constexpr size_t kToServerReadAt = 128 + 128;
constexpr size_t kToClientWrittenAt = 640;

std::string OurName() { return fmt::format("edl-ring-test-{}", getpid()); }

struct FileSpec {
  std::string magic = "EPDLRING";
  uint32_t version = 1;
  uint64_t capacity = kCapacity;
  size_t size = kBytesAt + 2 * kCapacity;
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
};

FileDescriptor MakeFile(const FileSpec& spec) {
  FileDescriptor file(memfd_create("by-hand", spec.flags));
  CHECK(file.valid() && ftruncate(file.get(), static_cast<off_t>(spec.size)) == 0);
  std::string header = spec.magic;
  header.append(reinterpret_cast<const char*>(&spec.version), sizeof(spec.version));
  header.append(4, '\0');
  header.append(reinterpret_cast<const char*>(&spec.capacity), sizeof(spec.capacity));
  header.resize(std::min(header.size(), spec.size));
  CHECK(pwrite(file.get(), header.data(), header.size(), 0) == static_cast<ssize_t>(header.size()));
  if (spec.seals != 0) CHECK(fcntl(file.get(), F_ADD_SEALS, spec.seals) == 0);
  return file;
}

void Send(const FileDescriptor& socket, const std::vector<int>& files) {
  char byte = 0;
  iovec part{.iov_base = &byte, .iov_len = 1};
  std::vector<char> control(CMSG_SPACE(files.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), files.data(), files.size() * sizeof(int));
  }
  CHECK(sendmsg(socket.get(), &message, MSG_NOSIGNAL) == 1);
}

// What a server says to these files.
Status AnswerToFiles(const std::vector<int>& files) {
  std::array<FileDescriptor, 2> sockets = SocketPair();
  Send(sockets[0], files);
  return AcceptRing(std::move(sockets[1])).status();
}

Status AnswerTo(const FileSpec& spec) { return AnswerToFiles({MakeFile(spec).get()}); }

size_t OpenFiles() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

Result<std::string> ReadText(Stream& stream, size_t most = 8192) {
  std::string text(most, '\0');
  const iovec room{.iov_base = text.data(), .iov_len = text.size()};
  EDL_ASSIGN_OR_RETURN(const size_t size, stream.Read({&room, 1}));
  return text.substr(0, size);
}

Result<size_t> WriteText(Stream& stream, std::string text) {
  const iovec piece{.iov_base = text.data(), .iov_len = text.size()};
  return stream.Write({&piece, 1});
}

// The memory of a ring as its other end has it, and a server's stream.
class RingByHand {
 public:
  RingByHand() {
    const FileDescriptor file = MakeFile({});
    memory_ = static_cast<char*>(
        mmap(nullptr, FileSpec().size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
    CHECK(memory_ != MAP_FAILED);
    std::array<FileDescriptor, 2> sockets = SocketPair();
    Send(sockets[0], {file.get()});
    socket_ = std::move(sockets[0]);
    server_ = AcceptRing(std::move(sockets[1])).value();
  }
  ~RingByHand() { munmap(memory_, FileSpec().size); }
  RingByHand(const RingByHand&) = delete;
  RingByHand& operator=(const RingByHand&) = delete;

  Stream& server() { return *server_; }
  const FileDescriptor& socket() const { return socket_; }
  char* bytes(size_t at) { return memory_ + at; }
  uint64_t position(size_t at) const {
    uint64_t value = 0;
    std::memcpy(&value, memory_ + at, sizeof(value));
    return value;
  }
  void SetPosition(size_t at, uint64_t value) { std::memcpy(memory_ + at, &value, sizeof(value)); }

 private:
  char* memory_;
  FileDescriptor socket_;
  std::unique_ptr<Stream> server_;
};

TEST(Ring, HasTheDocumentedLayout) {
  RingByHand ring;
  std::memcpy(ring.bytes(kBytesAt), "hello", 5);
  ring.SetPosition(kToServerWrittenAt, 5);

  EXPECT_EQ(*ReadText(ring.server()), "hello");
  EXPECT_EQ(*WriteText(ring.server(), "world!"), 6U);

  EXPECT_EQ(ring.position(kToServerReadAt), 5U);
  EXPECT_EQ(ring.position(kToClientWrittenAt), 6U);
  EXPECT_EQ(std::string_view(ring.bytes(kBytesAt + kCapacity), 6), "world!");
}

TEST(Ring, RefusesMemoryThatIsNoRing) {
  EXPECT_THAT(AnswerTo({.magic = "EPDLRINK"}).ToString(), HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(AnswerTo({.version = 2}).ToString(), HasSubstr("version 2"));
  EXPECT_THAT(AnswerTo({.size = 0}).ToString(), HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(AnswerTo({.size = 12}).ToString(), HasSubstr("INVALID_ARGUMENT"));
}

TEST(Ring, RefusesOtherCapacitiesThanThatOfItsSize) {
  constexpr uint64_t kMost = uint64_t{64} << 20;
  for (const uint64_t capacity : {uint64_t{0}, uint64_t{1}, uint64_t{2048}, uint64_t{4095},
                                  uint64_t{12288}, 2 * kMost, uint64_t{1} << 63, ~uint64_t{0}}) {
    const Status status = AnswerTo({.capacity = capacity, .size = kBytesAt + 2 * kCapacity});
    EXPECT_THAT(status, StatusIs(Code::kInvalidArgument)) << capacity;
    EXPECT_THAT(status.message(), HasSubstr("power of two")) << capacity;
  }
  for (const size_t size : {kBytesAt, kBytesAt + kCapacity, kBytesAt + 2 * kCapacity - 1,
                            kBytesAt + 2 * kCapacity + 1}) {
    EXPECT_THAT(AnswerTo({.size = size}), StatusIs(Code::kInvalidArgument)) << size;
  }
  EXPECT_OK(AnswerTo({.capacity = kMost, .size = kBytesAt + 2 * kMost}));
}

TEST(Ring, RefusesMemoryThatCanBeTruncated) {
  for (const int seals : {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_GROW | F_SEAL_SEAL,
                          F_SEAL_SHRINK | F_SEAL_SEAL}) {
    const Status status = AnswerTo({.seals = seals});
    EXPECT_THAT(status, StatusIs(Code::kInvalidArgument)) << seals;
    EXPECT_THAT(status.message(), HasSubstr("seals")) << seals;
  }
  EXPECT_THAT(AnswerTo({.seals = 0, .flags = MFD_CLOEXEC}), StatusIs(Code::kInvalidArgument));
}

TEST(Ring, RefusesMemoryThatMayNotBeWritten) {
  const FileSpec whole;
  EXPECT_THAT(AnswerTo({.seals = whole.seals | F_SEAL_WRITE}), StatusIs(Code::kInvalidArgument));

  const FileDescriptor file = MakeFile(whole);
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  const FileDescriptor to_read(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(AnswerToFiles({to_read.get()}), StatusIs(Code::kInvalidArgument));
}

TEST(Ring, RefusesFilesThatAreNoMemory) {
  const FileDescriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const std::array<FileDescriptor, 2> sockets = SocketPair();
  EXPECT_THAT(AnswerToFiles({null.get()}), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(AnswerToFiles({sockets[0].get()}), StatusIs(Code::kInvalidArgument));
}

TEST(Ring, TakesOneFileAndKeepsNoOther) {
  const size_t before = OpenFiles();
  {
    const FileDescriptor file = MakeFile({});
    EXPECT_THAT(AnswerToFiles({}), StatusIs(Code::kInvalidArgument));
    EXPECT_THAT(AnswerToFiles(std::vector<int>(2, file.get())), StatusIs(Code::kInvalidArgument));
    EXPECT_THAT(AnswerToFiles(std::vector<int>(3, file.get())), StatusIs(Code::kInvalidArgument));
    EXPECT_THAT(AnswerToFiles(std::vector<int>(100, file.get())), StatusIs(Code::kInvalidArgument));
    EXPECT_THAT(AnswerTo({.version = 2}), StatusIs(Code::kInvalidArgument));
    EXPECT_OK(AnswerToFiles({file.get()}));
  }
  EXPECT_EQ(OpenFiles(), before);
}

TEST(Ring, ReportsAClientThatExitsBeforeItSendsTheRing) {
  std::array<FileDescriptor, 2> sockets = SocketPair();
  sockets[0].Close();
  EXPECT_THAT(AcceptRing(std::move(sockets[1])), StatusIs(Code::kUnavailable));
}

TEST(Ring, EndsWhenTheWriterWritesInvalidCounters) {
  RingByHand ring;
  ring.SetPosition(kToServerWrittenAt, kCapacity + 1);

  EXPECT_THAT(ReadText(ring.server()), StatusIs(Code::kDataLoss));

  ring.SetPosition(kToServerWrittenAt, 0);
  EXPECT_THAT(ReadText(ring.server()), StatusIs(Code::kDataLoss));
  EXPECT_THAT(WriteText(ring.server(), "more"), StatusIs(Code::kDataLoss));
}

TEST(Ring, EndsWhenTheReaderWritesInvalidCounters) {
  RingByHand ring;
  ASSERT_EQ(*WriteText(ring.server(), "some"), 4U);
  ring.SetPosition(kToClientReadAt, 5);

  EXPECT_THAT(WriteText(ring.server(), "more"), StatusIs(Code::kDataLoss));

  ring.SetPosition(kToClientReadAt, 4);
  EXPECT_THAT(WriteText(ring.server(), "more"), StatusIs(Code::kDataLoss));
  EXPECT_THAT(ReadText(ring.server()), StatusIs(Code::kDataLoss));
}

TEST(Ring, SurvivesAPeerThatNotifiesWithoutEnd) {
  RingByHand ring;
  const std::string rings(1'000, '\0');
  while (send(ring.socket().get(), rings.data(), rings.size(), MSG_DONTWAIT) > 0) {
  }
  std::memcpy(ring.bytes(kBytesAt), "hello", 5);
  ring.SetPosition(kToServerWrittenAt, 5);

  ring.server().OnReady();

  EXPECT_EQ(*ReadText(ring.server()), "hello");
}

TEST(Ring, KeepsNoFileThatComesWithARing) {
  RingByHand ring;
  const FileDescriptor file = MakeFile({});
  const size_t before = OpenFiles();

  Send(ring.socket(), {file.get()});
  ring.server().OnReady();

  EXPECT_EQ(*ReadText(ring.server()), "");
  EXPECT_EQ(OpenFiles(), before);
}

TEST(Ring, ReportsThatNoServerListens) {
  const Status status = ConnectRing(OurName()).status();
  EXPECT_THAT(status, StatusIs(Code::kUnavailable));
  EXPECT_THAT(status.message(), HasSubstr(OurName()));
}

TEST(Ring, RefusesAnInvalidCapacity) {
  const Result<FileDescriptor> listener = ListenUnix(OurName());
  ASSERT_OK(listener);
  EXPECT_THAT(ConnectRing(OurName(), 5000), StatusIs(Code::kInvalidArgument));
}

TEST(Ring, IsNotSentToAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  ASSERT_EQ(seteuid(65534), 0);
  const Result<FileDescriptor> listener = ListenUnix(OurName());
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_OK(listener);

  const Status status = ConnectRing(OurName()).status();

  EXPECT_THAT(status, StatusIs(Code::kPermissionDenied));
  EXPECT_THAT(status.message(), HasSubstr("65534"));
}

TEST(Ring, KeepsWhatAProcessWroteBeforeItWasKilled) {
  const std::string name = OurName();
  const Result<FileDescriptor> listener = ListenUnix(name);
  ASSERT_OK(listener);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Result<std::unique_ptr<Stream>> client = ConnectRing(name, kCapacity);
    if (client.ok() && WriteText(**client, "last words").ok()) raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));

  const Result<std::unique_ptr<Stream>> server = AcceptRing(AcceptNext(*listener));
  ASSERT_OK(server);

  EXPECT_EQ(*ReadText(**server, 4), "last");
  ASSERT_TRUE(Await(**server, Stream::Interest::kRead));
  EXPECT_EQ(*ReadText(**server), " words");
  EXPECT_THAT(ReadText(**server), StatusIs(Code::kUnavailable));
}

}  // namespace
}  // namespace edl::wire
