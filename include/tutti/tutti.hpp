#pragma once

/// Everything a program needs:
///
///     tutti::Session session(&argc, &argv);
///     std::vector<float> gradient(n);
///     session.world().allreduce(std::span(gradient), tutti::Op::average);
#include "tutti/buffer.hpp"
#include "tutti/communicator.hpp"
#include "tutti/error.hpp"
#include "tutti/reducer.hpp"
#include "tutti/session.hpp"
#include "tutti/types.hpp"
#include "tutti/version.hpp"
