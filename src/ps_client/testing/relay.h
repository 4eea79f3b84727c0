#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <list>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "wire/socket.h"

namespace edl::ps_client {

// A TCP relay before a server that can stop forwarding without closing anything, as a network does
// that was cut. Thread-safe.
class Relay {
 public:
  // Port 0 picks one.
  explicit Relay(uint16_t target, uint16_t port = 0)
      : target_(target),
        listener_(*wire::ListenTcp("127.0.0.1", port)),
        thread_([this] { Run(); }) {}
  ~Relay() {
    ended_ = true;
    thread_.join();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  uint16_t port() const { return listener_.port; }
  // Where new connections lead.
  void SetTarget(uint16_t target) { target_ = target; }
  // Nothing passes on the connections that exist now.
  void CutExisting() { cut_ = made_.load(); }
  // Nothing passes at all: connections are accepted, as by the kernel of a stopped process.
  void CutAll(bool cut) { cut_all_ = cut; }
  int made() const { return made_; }

 private:
  struct Pair {
    FileDescriptor client;
    FileDescriptor server;
    int number = 0;
  };

  void Run() {
    while (!ended_) {
      Accept();
      for (auto it = pairs_.begin(); it != pairs_.end();) {
        const bool is_cut = cut_all_ || it->number <= cut_;
        const bool lives =
            is_cut || (Carry(it->client, it->server) && Carry(it->server, it->client));
        it = lives ? std::next(it) : pairs_.erase(it);
      }
      poll(nullptr, 0, 1);
    }
  }

  void Accept() {
    Result<std::optional<FileDescriptor>> accepted = wire::Accept(listener_.socket);
    if (!accepted.ok() || !accepted->has_value()) return;
    auto server = wire::ConnectTcp("127.0.0.1", target_, std::chrono::seconds(5));
    if (!server.ok()) return;
    pairs_.push_back(
        {.client = **std::move(accepted), .server = *std::move(server), .number = ++made_});
  }

  // False: an end is closed.
  static bool Carry(const FileDescriptor& from, const FileDescriptor& to) {
    std::array<char, 65536> bytes;  // NOLINT: written before it is read
    const ssize_t got = recv(from.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    for (ssize_t sent = 0; sent < got;) {
      pollfd room{.fd = to.get(), .events = POLLOUT, .revents = 0};
      poll(&room, 1, 1000);
      const ssize_t some = send(to.get(), bytes.data() + sent, static_cast<size_t>(got - sent),
                                MSG_DONTWAIT | MSG_NOSIGNAL);
      if (some < 0 && errno != EAGAIN) return false;
      sent += some < 0 ? 0 : some;
    }
    return true;
  }

  std::atomic<uint16_t> target_;
  wire::TcpListener listener_;
  std::list<Pair> pairs_;
  std::atomic<int> made_ = 0;
  std::atomic<int> cut_ = 0;
  std::atomic<bool> cut_all_ = false;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace edl::ps_client
