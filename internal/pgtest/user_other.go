//go:build !linux

package pgtest

import "syscall"

// other adds nothing: whoever runs the tests runs the server.
func other() *syscall.SysProcAttr { return nil }

func give(...string) error { return nil }
