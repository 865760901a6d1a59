//go:build wasip1

package hostcall

import (
	"github.com/mortise-dev/mortise/sdk/go/capability"
	"github.com/mortise-dev/mortise/sdk/go/internal/block"
)

//go:wasmimport mortise:host/1 host_error
func hostError() uint64

// Failure is the error for a negative result of a function of the host.
func Failure(code int32) error {
	return &capability.Error{Code: capability.Code(code), Text: string(block.Take(hostError()))}
}
