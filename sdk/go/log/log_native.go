//go:build !wasip1

package log

import "os"

func write(l level, line string) {
	name := [...]string{levelDebug: "debug", levelInfo: "info", levelWarn: "warn", levelError: "error"}[l]
	line = line[:min(len(line), maxLine)]
	// Standard error may be closed; there is nowhere else to say so.
	_, _ = os.Stderr.WriteString(name + ": " + line + "\n")
}
