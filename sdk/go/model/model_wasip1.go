//go:build wasip1

package model

import (
	"github.com/mortise-dev/mortise/sdk/go/internal/block"
	"github.com/mortise-dev/mortise/sdk/go/internal/hostcall"
)

//go:wasmimport mortise:host/1 model_ask
func modelAsk(request uint64) int64

func ask(request []byte) ([]byte, error) {
	at := block.Give(string(request))
	n := modelAsk(at)
	block.Drop(at)
	if n < 0 {
		return nil, hostcall.Failure(int32(n))
	}
	return block.Take(uint64(n)), nil
}
