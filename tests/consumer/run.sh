#!/usr/bin/env bash
# Installs the build into a folder of its own, builds a stranger's project against it, by CMake and by pkg-config, and runs both on two ranks.
# Usage: run.sh BUILD SOURCE WORK LAUNCH…
set -euo pipefail
build=$1 source=$2 work=$3
shift 3
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/installed" >"$work/install.log"
cmake -S "$source/tests/consumer/project" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/installed" \
  -DEXAMPLE="$source/tools/examples/allreduce.cpp" >"$work/configure.log"
cmake --build "$work/build"
"$@" "$work/build/stranger" | tee "$work/cmake.txt"
grep -q 'average over 2 ranks: 0.5' "$work/cmake.txt"

export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$work/installed" -name tutti.pc)")
# shellcheck disable=SC2046
${CXX:-g++} -std=c++20 "$source/tools/examples/allreduce.cpp" $(pkg-config --cflags --libs tutti) -Wl,-rpath,"$(pkg-config --variable=libdir tutti)" -o "$work/by-pkg-config"
"$@" "$work/by-pkg-config" | tee "$work/pkg-config.txt"
grep -q 'average over 2 ranks: 0.5' "$work/pkg-config.txt"

# A public header must not need MPI, and nothing but the library's own face may be exported.
! grep -rnE '#include *[<"](mpi|hwy|Eigen|cuda|fmt)' "$work/installed/include"
leaked=$(nm -DC --defined-only "$(find "$work/installed" -name 'libtutti.so')" | grep -E ' [TW] ' | grep -vE ' tutti::|typeinfo|vtable|std::|fmt::' || true)
[ -z "$leaked" ] || { echo "exported by accident:"; echo "$leaked"; exit 1; }
echo "consumer: all passed"
