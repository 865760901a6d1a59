// Command guestbuild builds the guests of this repository with the Go toolchain
// alone, and checks that the committed files are what the sources give.
//
//	go run ./internal/guestbuild           build all into testdata/guests
//	go run ./internal/guestbuild -check    build elsewhere and compare
//	go run ./internal/guestbuild -only redact
//
// The thousands of data segments that the Go linker writes are joined to a few; the memory of an
// instance is the same.
//
// The guests with the bundled policies and plugins are kept compressed in internal/bundle, too, with
// their checksums.
//
// Builds are reproducible: the same sources and toolchain give the same bytes in
// any folder. With another toolchain than the one in testdata/guests/TOOLCHAIN,
// -check still builds, and prints that it compared nothing.
//
// # Concurrency
//
// Two guests are built at a time.
//
// # Errors
//
// The exit code is 1 when a guest does not build or differs, 2 for a wrong flag.
package main
