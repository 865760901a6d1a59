//go:build !linux

package pgtest

import "syscall"

// other adds nothing: the user of the tests runs the server.
func other() *syscall.SysProcAttr { return nil }

func give(...string) error { return nil }
