//go:build unix

package checkcmd

import (
	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/cli/check"
)

// fewFiles is a limit that 1000 streams reach.
const fewFiles = 4096

// checkFiles looks at the limit of open files.
func checkFiles() check.Finding {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return check.Failed("", err)
	}
	if limit.Cur < fewFiles {
		return check.Warned("raise it with ulimit -n or LimitNOFILE of systemd", "%d may be open, and each stream and run needs some", limit.Cur)
	}
	return check.Fine("%d may be open", limit.Cur)
}
