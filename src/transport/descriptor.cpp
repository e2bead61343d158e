#include "transport/descriptor.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace tutti::transport {
namespace {

/// Abstract: a zero byte, then the name; no file, and gone with the last descriptor.
std::pair<sockaddr_un, socklen_t> address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)};
}

void limit_waiting(int socket) {
  const timeval limit{5, 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

union Ancillary {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

bool same_user(int connection) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 &&
         credentials.uid == geteuid();
}

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

DescriptorServer::DescriptorServer() : listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  std::array<std::uint64_t, 2> random{};
  if (!listener_ || getrandom(random.data(), sizeof random, 0) != sizeof random)
    base::fail<SystemError>("cannot make a socket: {}", base::errno_text(errno));
  name_ = fmt::format("tutti-{:016x}{:016x}", random[0], random[1]);
  const auto [address, length] = address_of(name_);
  if (bind(listener_.number(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener_.number(), SOMAXCONN) != 0)
    base::fail<SystemError>("cannot listen on a socket: {}", base::errno_text(errno));
  limit_waiting(listener_.number());
}

void DescriptorServer::serve(int descriptor, int callers) const {
  while (callers > 0) {
    const Descriptor connection(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection && errno != EINTR) return;  // nobody came for seconds
    if (!connection || !same_user(connection.number())) continue;
    --callers;
    char byte = 1;
    iovec data{&byte, 1};
    Ancillary control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    sendmsg(connection.number(), &message, MSG_NOSIGNAL);
  }
}

Descriptor connect_to(const std::string& name) {
  Descriptor connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto [address, length] = address_of(name);
  if (!connection || connect(connection.number(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      !same_user(connection.number()))
    return Descriptor();
  limit_waiting(connection.number());
  return connection;
}

Descriptor receive_from(const Descriptor& connection) {
  char byte = 0;
  iovec data{&byte, 1};
  Ancillary control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  if (recvmsg(connection.number(), &message, MSG_CMSG_CLOEXEC) != 1) return Descriptor();
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int)))
    return Descriptor();
  int number = -1;
  std::memcpy(&number, CMSG_DATA(header), sizeof number);
  return Descriptor(number);
}

}  // namespace tutti::transport
