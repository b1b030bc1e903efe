#!/bin/sh
# The apply command of the demo's hosts: puts the folder that it runs in in place
# below HOST_ROOT, if the host has the memory that a service asks for.
set -eu

find . -name service.env | while read -r service; do
  version=$(sed -n 's/^VERSION=//p' "$service")
  needs=$(sed -n 's/^MEMORY_MIB=//p' "$service")
  if [ "$needs" -gt "$HOST_MEMORY_MIB" ]; then
    echo "hello-world $version needs $needs MiB of memory, this host has $HOST_MEMORY_MIB MiB" >&2
    exit 1
  fi
done

place=$HOST_ROOT/$LANDFALL_NAME
mkdir -p "$HOST_ROOT"
rm -rf "$place.new"
cp -R . "$place.new"
rm -rf "$place"
mv "$place.new" "$place"
