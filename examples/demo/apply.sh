#!/bin/sh
# The apply command of the demo's hosts. landfall-agent runs it in a folder of a
# Git repository as it is at a commit: the cluster type's folder of the platform's
# repository, or the manifests of a deployment target that is assigned to it. It
# puts the folder in place below HOST_ROOT, if the host has the memory that a
# service asks for, and has every service run with its manifests and what the
# platform gives it.
set -eu

if [ -f service.env ]; then
  version=$(sed -n 's/^VERSION=//p' service.env)
  needs=$(sed -n 's/^MEMORY_MIB=//p' service.env)
  if [ "$needs" -gt "$HOST_MEMORY_MIB" ]; then
    echo "$LANDFALL_NAME $version needs $needs MiB of memory, this host has $HOST_MEMORY_MIB MiB" >&2
    exit 1
  fi
fi

# swap has a folder replace another.
swap() {
  rm -rf "$2"
  mv "$1" "$2"
}

mkdir -p "$HOST_ROOT"
rm -rf "$HOST_ROOT"/*.new
cp -R . "$HOST_ROOT/$LANDFALL_NAME.new"
swap "$HOST_ROOT/$LANDFALL_NAME.new" "$HOST_ROOT/$LANDFALL_NAME"

# What runs is a file for each service, in this demo.
mkdir "$HOST_ROOT/running.new"
for assignment in "$HOST_ROOT"/platform/*/; do
  manifests=$HOST_ROOT/$(basename "$assignment")
  [ -f "$manifests/service.env" ] || continue # they have not come yet
  (
    . "$assignment/namespace.sh"
    . "$assignment/reconciler.sh"
    . "$assignment/platform-config.sh"
    . "$manifests/service.env"
    printf '%s\n' "WORKLOAD=$WORKLOAD" "VERSION=$VERSION" "REGION=$REGION" "DATABASE_URL=$DATABASE_URL" >"$HOST_ROOT/running.new/$NAMESPACE"
  )
done
swap "$HOST_ROOT/running.new" "$HOST_ROOT/running"
echo "$LANDFALL_NAME $LANDFALL_COMMIT" >>"$HOST_ROOT/applied"
