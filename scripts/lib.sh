# Sourced by the other scripts: where the project is, and how mpirun wants to be called on this machine.
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${TUTTI_BUILD:-$root/build}
jobs=$(nproc 2>/dev/null || echo 2)

die() { echo "$(basename "$0"): $*" >&2; exit 1; }

# mpi_launch N: sets the array `launch` to the command that starts N ranks; detects Open MPI 4 and 5, MPICH and Intel MPI, root, and more
# ranks than cores.
mpi_launch() {
  local ranks=$1 mpirun=${MPIRUN:-} version
  if [ -z "$mpirun" ]; then
    # The launcher of the library that the build found, or whatever is on the PATH.
    if [ -f "$build/CMakeCache.txt" ]; then mpirun=$(sed -n 's/^MPIEXEC_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt"); fi
    [ -n "$mpirun" ] && [ -x "$mpirun" ] || mpirun=$(command -v mpirun || command -v mpiexec || true)
  fi
  [ -n "$mpirun" ] || die "no mpirun found; scripts/setup installs one"
  version=$("$mpirun" --version 2>&1 | head -n 3)
  launch=("$mpirun" -n "$ranks")
  case "$version" in
    *"Open MPI"*|*OpenRTE*|*prterun*)
      [ "$(id -u)" = 0 ] && launch+=(--allow-run-as-root)
      if [[ "$version" =~ (Open\ MPI\)|Open\ MPI|OpenRTE)\)?\ +5 || "$version" == *prterun* ]]; then
        launch+=(--map-by :oversubscribe --mca mpi_yield_when_idle 1)
      else
        launch+=(--oversubscribe --mca mpi_yield_when_idle 1)
      fi
      if [ "$ranks" -gt "$jobs" ]; then launch+=(--bind-to none); fi ;;
    *) : ;;  # MPICH and Intel MPI need no flags: they start as many ranks as they are told to
  esac
}
