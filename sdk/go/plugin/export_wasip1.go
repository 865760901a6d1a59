//go:build wasip1

package plugin

import (
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/internal/rt"
)

//go:wasmexport describe
func exportDescribe() int32 { return rt.Serve(registered.handler(mortise.ExportDescribe)) }

//go:wasmexport on_phase
func exportOnPhase() int32 { return rt.Serve(registered.handler(mortise.ExportOnPhase)) }

//go:wasmexport call_tool
func exportCallTool() int32 { return rt.Serve(registered.handler(mortise.ExportCallTool)) }

//go:wasmexport validate
func exportValidate() int32 { return rt.Serve(registered.handler(mortise.ExportValidate)) }
