package program

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/mortise-dev/mortise/abi"
)

// release is the version of a released binary; the linker sets it. See internal/release.
var release string //nolint:gochecknoglobals // the linker sets variables alone

// semver returns the release, or the version of the module that go install was given, or "devel".
func semver() string {
	v := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v = info.Main.Version
	}
	return cmp.Or(release, v)
}

// Version returns the versions of this binary, of the ABI and of Go.
func Version() string {
	return fmt.Sprintf("mortise %s, ABI %d to %d, %s %s/%s",
		semver(), abi.MinVersion, abi.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
