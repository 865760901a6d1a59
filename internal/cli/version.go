package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/mortise-dev/mortise/abi"
)

// versionText says what this binary is and what it speaks.
func versionText() string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
	return fmt.Sprintf("mortise %s, ABI %d to %d, %s %s/%s",
		version, abi.MinVersion, abi.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
