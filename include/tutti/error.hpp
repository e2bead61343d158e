#pragma once

#include <stdexcept>
#include <string>

#include "tutti/export.hpp"

namespace tutti {

/// Base of everything that tutti throws. what() says what happened, where (rank, host, operation number,
/// tensor), expected against found, and what to do next.
class TUTTI_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller passed something that can never work. Nothing was sent; the communicator is as before.
class TUTTI_API InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// Ranks called different operations, or the same one with different counts, types, ops or names.
class TUTTI_API MismatchError : public Error {
 public:
  using Error::Error;
};

/// A rank of the communicator died or cannot be reached any more.
class TUTTI_API PeerLostError : public Error {
 public:
  using Error::Error;
};

/// An operation did not end before its deadline.
class TUTTI_API TimeoutError : public Error {
 public:
  using Error::Error;
};

/// A file, a device or the operating system refused.
class TUTTI_API SystemError : public Error {
 public:
  using Error::Error;
};

}  // namespace tutti
