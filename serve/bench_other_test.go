//go:build !unix

package serve_test

// openFiles is how many files the process may have open: as many as it likes.
func openFiles() uint64 { return 1 << 20 }
