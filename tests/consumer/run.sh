#!/usr/bin/env bash
# Installs the library that was built in $1 and builds a consumer against it with find_package; then runs it.
set -euo pipefail
build=$1
source=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
cmake -G Ninja -S "$source" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" >"$scratch/configure.log" || { cat "$scratch/configure.log"; exit 1; }
cmake --build "$scratch/build"
"$scratch/build/consumer"
"$scratch/prefix/bin/finescale" --version
