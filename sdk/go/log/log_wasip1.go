//go:build wasip1

package log

import "github.com/mortise-dev/mortise/sdk/go/internal/block"

//go:wasmimport extism:host/env log_debug
func logDebug(at uint64)

//go:wasmimport extism:host/env log_info
func logInfo(at uint64)

//go:wasmimport extism:host/env log_warn
func logWarn(at uint64)

//go:wasmimport extism:host/env log_error
func logError(at uint64)

//go:wasmimport extism:host/env free
func free(at uint64)

func write(l level, line string) {
	at := block.New(line, maxLine)
	switch l {
	case levelDebug:
		logDebug(at)
	case levelInfo:
		logInfo(at)
	case levelWarn:
		logWarn(at)
	case levelError:
		logError(at)
	}
	free(at)
}
