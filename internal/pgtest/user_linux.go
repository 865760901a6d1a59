package pgtest

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// other makes a process end with its parent, and not be root.
func other() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if uid, gid, ok := nobody(); ok {
		attr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	return attr
}

// nobody is the account that runs the server if we are root.
func nobody() (uid, gid uint32, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		id, errUser := strconv.ParseUint(u.Uid, 10, 32)
		group, errGroup := strconv.ParseUint(u.Gid, 10, 32)
		if errUser == nil && errGroup == nil {
			return uint32(id), uint32(group), true
		}
	}
	return 0, 0, false
}

// give makes files belong to who runs the server.
func give(paths ...string) error {
	uid, gid, ok := nobody()
	for _, p := range paths {
		if !ok {
			break
		}
		if err := os.Chown(p, int(uid), int(gid)); err != nil {
			return err
		}
	}
	return nil
}
