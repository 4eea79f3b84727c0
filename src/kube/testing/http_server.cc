#include "kube/testing/http_server.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

namespace edl::kube {
namespace {

// Reads until `text` has `wanted` bytes. Returns false if the client closed the connection.
bool ReadUpTo(int fd, std::string& text, size_t wanted) {
  std::array<char, 4096> buffer{};
  while (text.size() < wanted) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got <= 0) return false;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return true;
}

std::optional<ServedRequest> ReadRequest(int fd, std::string& text) {
  size_t end = std::string::npos;
  while ((end = text.find("\r\n\r\n")) == std::string::npos) {
    if (!ReadUpTo(fd, text, text.size() + 1)) return std::nullopt;
  }
  ServedRequest request;
  const std::string head = text.substr(0, end);
  const size_t space = head.find(' ');
  request.method = head.substr(0, space);
  request.target = head.substr(space + 1, head.find(' ', space + 1) - space - 1);
  for (size_t at = head.find("\r\n"); at != std::string::npos; at = head.find("\r\n", at + 2)) {
    const std::string line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    request.headers[name] = line.substr(colon + 2);
  }
  const auto length = request.headers.find("content-length");
  const size_t body = length == request.headers.end() ? 0 : std::stoul(length->second);
  if (!ReadUpTo(fd, text, end + 4 + body)) return std::nullopt;
  request.body = text.substr(end + 4, body);
  text.erase(0, end + 4 + body);
  return request;
}

}  // namespace

void ServedConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the client closed the connection
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

void ServedConnection::Answer(int status, std::string_view body, std::string_view more_headers) {
  Send(fmt::format("HTTP/1.1 {} Status\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(),
                   more_headers, body));
}

void ServedConnection::BeginChunks(int status) {
  Send(fmt::format("HTTP/1.1 {} Status\r\nTransfer-Encoding: chunked\r\n\r\n", status));
}

void ServedConnection::Chunk(std::string_view bytes) {
  Send(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes));
}

void ServedConnection::EndChunks() { Send("0\r\n\r\n"); }

void ServedConnection::Break() { shutdown(fd_, SHUT_RDWR); }

void ServedConnection::AwaitClose() {
  std::array<char, 256> buffer{};
  while (read(fd_, buffer.data(), buffer.size()) > 0) {
  }
}

HttpServer::HttpServer(Handle handle) : handle_(std::move(handle)) {
  listener_ = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  CHECK(bind(listener_.get(), generic, size) == 0 && listen(listener_.get(), 16) == 0 &&
            getsockname(listener_.get(), generic, &size) == 0,
        "cannot listen on a loopback port");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

HttpServer::~HttpServer() {
  shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    for (const auto& socket : sockets_) shutdown(socket->get(), SHUT_RDWR);
    std::swap(threads, threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

std::string HttpServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

void HttpServer::Accept() {
  while (true) {
    const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    ++connections_;
    const MutexLock lock(mutex_);
    // Owned by the server, which closes it at the end, and by the thread.
    sockets_.push_back(std::make_shared<FileDescriptor>(fd));
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void HttpServer::Serve(int fd) {
  std::string text;
  while (const auto request = ReadRequest(fd, text)) {
    ServedConnection connection(fd);
    handle_(*request, connection);
  }
  shutdown(fd, SHUT_RDWR);
}

}  // namespace edl::kube
