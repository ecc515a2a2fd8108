#!/usr/bin/env bash
# Builds tidb-server from its module into DIR (default: GOPATH/bin), for
# TestEachJobRunsOnceOnTiDB. It takes half an hour of two cores and 4 GB.
set -euo pipefail
version=v1.1.0-beta.0.20241125141335-ec8b81b98edc # of 2024-11-25; its parser is a separate module
dir=$(realpath "${1:-$(go env GOPATH)/bin}")
export GOTOOLCHAIN=go1.23.12 GOFLAGS=-mod=mod
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
cp -r "$(go mod download -json github.com/pingcap/tidb@$version | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')" source
chmod -R u+w source
cd source
go mod edit -replace github.com/pingcap/tidb/pkg/parser=github.com/pingcap/tidb/pkg/parser@v0.0.0-20241125141335-ec8b81b98edc
nice go build -trimpath -ldflags "-s -w" -o "$dir/tidb-server" ./cmd/tidb-server
