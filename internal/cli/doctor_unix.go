//go:build unix

package cli

import "golang.org/x/sys/unix"

// fewFiles is a limit that 1000 streams reach.
const fewFiles = 4096

// checkFiles looks at the limit of open files.
func checkFiles() finding {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return failed("", err)
	}
	if limit.Cur < fewFiles {
		return warned("raise it with ulimit -n or LimitNOFILE of systemd", "%d may be open, and each stream and run needs some", limit.Cur)
	}
	return fine("%d may be open", limit.Cur)
}
