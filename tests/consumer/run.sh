#!/usr/bin/env bash
# Installs the build into a folder of its own, builds a stranger's project against it, by CMake and by pkg-config, and runs both on two
# ranks; also takes the sources as a subfolder. Usage: run.sh BUILD SOURCE WORK LAUNCH…
set -euo pipefail
build=$1 source=$2 work=$3
shift 3
fail() { echo "consumer: FAILED: $*" >&2; exit 1; }
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/installed"  # an installed tree may move
cmake -S "$source/tests/consumer/project" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/installed" \
  -DEXAMPLE="$source/tools/examples/allreduce.cpp" >"$work/configure.log"
cmake --build "$work/build"
"$@" "$work/build/stranger" | tee "$work/cmake.txt"
grep -q 'average over 2 ranks: 0.5' "$work/cmake.txt" || fail "the program built with find_package printed something else"

pc=$(find "$work/installed" -name tutti.pc)
[ -n "$pc" ] || fail "no tutti.pc was installed"
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$pc")
read -r -a flags <<<"$(pkg-config --cflags --libs tutti)"
"${CXX:-g++}" -std=c++20 "$source/tools/examples/allreduce.cpp" "${flags[@]}" -Wl,-rpath,"$(pkg-config --variable=libdir tutti)" \
  -o "$work/by-pkg-config"
"$@" "$work/by-pkg-config" | tee "$work/pkg-config.txt"
grep -q 'average over 2 ranks: 0.5' "$work/pkg-config.txt" || fail "the program built with pkg-config printed something else"

version=$(pkg-config --modversion tutti)
if [ -e "$build/tutti" ]; then
  installed=$("$work/installed/bin/tutti" --version)
  [ "$installed" = "tutti $version" ] || fail "the installed program says '$installed', tutti.pc says $version"
  [ -f "$work/installed/share/tutti/examples/allreduce.cpp" ] || fail "the examples were not installed"
fi

# A public header must not need MPI, and nothing but the library's own face may be exported.
headers=$(find "$work/installed/include" -name '*.hpp')
[ "$(wc -l <<<"$headers")" -ge 7 ] || fail "only these headers were installed: $headers"
if grep -rnE '#include *[<"](mpi|hwy|Eigen|cuda|nccl|fmt)' "$work/installed/include"; then fail "a public header needs another library"; fi
library=$(find "$work/installed" -name libtutti.so)
exported=$(nm -DC --defined-only "$library" | grep -E ' [TDB] ' || true)
grep -q 'tutti::Communicator::allreduce' <<<"$exported" || fail "allreduce is not exported"
leaked=$(grep -vE ' [TDB] (tutti::[A-Za-z_0-9]+(::|\()|_init$|_fini$)' <<<"$exported" || true)
inner=$(grep -E ' tutti::(base|kernel|schedule|transport|engine|model|data|train)::' <<<"$exported" || true)
[ -z "$leaked$inner" ] || fail "exported by accident:"$'\n'"$leaked"$'\n'"$inner"

# Programs must start where there is no driver and no NCCL: neither may be linked.
for file in "$library" "$work"/installed/bin/*; do
  [ -e "$file" ] || continue
  if readelf -d "$file" | grep -E 'NEEDED.*(libcuda|libcudart|libnccl)'; then fail "$file links a CUDA library"; fi
done

# As a subfolder of another project: its defaults are left alone, and the target has the same name.
cmake -S "$source/tests/consumer/subfolder" -B "$work/subfolder" -G Ninja -DTUTTI="$source" -DTUTTI_PARTS=core \
  -DEXAMPLE="$source/tools/examples/allreduce.cpp" >"$work/subfolder.log"
grep -q 'subfolder: no tests, tutti::tutti is there' "$work/subfolder.log" || fail "add_subdirectory: $(cat "$work/subfolder.log")"
echo "consumer: all passed"
