//go:build wasip1

package summarizer

import (
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/internal/rt"
)

//go:wasmexport describe
func exportDescribe() int32 { return rt.Serve(registered.handler(mortise.ExportDescribe)) }

//go:wasmexport summarize
func exportSummarize() int32 { return rt.Serve(registered.handler(mortise.ExportSummarize)) }
