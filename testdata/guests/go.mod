// This folder holds binaries for tests. It is a module of its own so that the zip of mortise, which every embedder downloads, is without them.
module github.com/mortise-dev/mortise/testdata/guests

go 1.26.0
