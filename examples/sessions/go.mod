// This folder holds fixtures. It is a module of its own so that the zip of mortise, which every embedder downloads, is without them.
module github.com/mortise-dev/mortise/examples/sessions

go 1.26.0
