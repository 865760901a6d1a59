//go:build wasip1

package kv

import (
	"github.com/mortise-dev/mortise/sdk/go/internal/block"
	"github.com/mortise-dev/mortise/sdk/go/internal/hostcall"
)

//go:wasmimport mortise:host/1 kv_get
func kvGet(key uint64) int64

//go:wasmimport mortise:host/1 kv_set
func kvSet(key, value uint64) int32

//go:wasmimport mortise:host/1 kv_delete
func kvDelete(key uint64) int32

//go:wasmimport mortise:host/1 kv_list
func kvList(prefix, after uint64, limit uint32) int64

func get(key string) (value []byte, found bool, err error) {
	at := block.Give(key)
	n := kvGet(at)
	block.Drop(at)
	if n < 0 {
		return nil, false, hostcall.Failure(int32(n))
	}
	return block.Take(uint64(n)), n > 0, nil
}

func set(key string, value []byte) error {
	at, from := block.Give(key), block.Give(string(value))
	n := kvSet(at, from)
	block.Drop(at)
	block.Drop(from)
	if n < 0 {
		return hostcall.Failure(n)
	}
	return nil
}

func remove(key string) (was bool, err error) {
	at := block.Give(key)
	n := kvDelete(at)
	block.Drop(at)
	if n < 0 {
		return false, hostcall.Failure(n)
	}
	return n > 0, nil
}

// list asks for as many keys as the host gives at once.
func list(prefix, after string) ([]string, error) {
	at, from := block.Give(prefix), block.Give(after)
	n := kvList(at, from, 0)
	block.Drop(at)
	block.Drop(from)
	if n < 0 {
		return nil, hostcall.Failure(int32(n))
	}
	return split(block.Take(uint64(n))), nil
}
