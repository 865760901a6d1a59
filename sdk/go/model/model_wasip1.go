//go:build wasip1

package model

import (
	"github.com/mortise-dev/mortise/sdk/go/internal/block"
	"github.com/mortise-dev/mortise/sdk/go/internal/hostcall"
)

//go:wasmimport mortise:host/1 model_ask
func modelAsk(request uint64) int64

//go:wasmimport mortise:host/1 model_chat
func modelChat(question, prompt uint64) int64

//go:wasmimport mortise:host/1 model_info
func modelInfo(role uint64) int64

func chat(q Question) (string, error) {
	head, prompt := block.Give(string(appendHead(nil, q))), block.Give(q.Prompt)
	n := modelChat(head, prompt)
	block.Drop(head)
	block.Drop(prompt)
	if n < 0 {
		return "", hostcall.Failure(int32(n))
	}
	return string(block.Take(uint64(n))), nil
}

func info(role string) (RoleInfo, error) {
	at := block.Give(role)
	n := modelInfo(at)
	block.Drop(at)
	if n < 0 {
		return RoleInfo{}, hostcall.Failure(int32(n))
	}
	return readInfo(string(block.Take(uint64(n)))), nil
}

func ask(request []byte) ([]byte, error) {
	at := block.Give(string(request))
	n := modelAsk(at)
	block.Drop(at)
	if n < 0 {
		return nil, hostcall.Failure(int32(n))
	}
	return block.Take(uint64(n)), nil
}
