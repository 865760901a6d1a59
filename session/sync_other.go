//go:build !unix

package session

// sync does nothing: a folder cannot be synced here.
func (*Dir) sync(string) error { return nil }
