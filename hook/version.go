package hook

import (
	"regexp"
	"slices"
	"strconv"
)

// version is three numbers with dots between them, wherever they are in what a program prints of itself.
var version = regexp.MustCompile(`(\d+)\.(\d+)\.(\d+)`)

// Before reports whether an agent that prints one version is older than another. Of a text without a version it is not known, so false.
func Before(printed, than string) bool {
	a, b := version.FindStringSubmatch(printed), version.FindStringSubmatch(than)
	if a == nil || b == nil {
		return false
	}
	return slices.CompareFunc(a[1:], b[1:], func(x, y string) int {
		m, _ := strconv.Atoi(x)
		n, _ := strconv.Atoi(y)
		return m - n
	}) < 0
}
