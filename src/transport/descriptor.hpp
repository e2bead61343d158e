#pragma once

#include <string>
#include <vector>

namespace tutti::transport {

/// A file descriptor with an owner.
class Descriptor {
 public:
  Descriptor() = default;

  explicit Descriptor(int number) : number_(number) {}

  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  int number() const { return number_; }

  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// Hands a descriptor to other processes of this user, over an abstract socket with a random name.
class DescriptorServer {
 public:
  /// Throws SystemError.
  DescriptorServer();

  const std::string& name() const { return name_; }

  /// Answers so many callers that have connected already. Who is of another user gets nothing.
  void serve(int descriptor, int callers) const;

 private:
  std::string name_;
  Descriptor listener_;
};

/// The caller's side: connect_to() does not wait for the server; it gives no descriptor if there is nobody.
Descriptor connect_to(const std::string& name);
/// Waits some seconds for what the server hands out; no descriptor if nothing came.
Descriptor receive_from(const Descriptor& connection);

}  // namespace tutti::transport
