//go:build !unix

package mailboxtest

import "os"

// Elsewhere no process can be stopped; a child that would be is killed at once.
func freeze(*os.Process) error { return nil }
func thaw(*os.Process) error   { return nil }
