//go:build wasip1

package http

import (
	"github.com/mortise-dev/mortise/sdk/go/internal/block"
	"github.com/mortise-dev/mortise/sdk/go/internal/hostcall"
)

//go:wasmimport mortise:host/1 http_fetch
func httpFetch(request, body uint64) int64

//go:wasmimport extism:host/env http_status_code
func httpStatusCode() int32

//go:wasmimport extism:host/env http_headers
func httpHeaders() uint64

func do(r Request) (Response, error) {
	request, body := block.Give(string(appendRequest(nil, r))), block.Give(string(r.Body))
	n := httpFetch(request, body)
	block.Drop(request)
	block.Drop(body)
	if n < 0 {
		return Response{}, hostcall.Failure(int32(n))
	}
	return Response{
		Status: int(httpStatusCode()),
		Header: readHeaders(string(block.Take(httpHeaders()))),
		Body:   block.Take(uint64(n)),
	}, nil
}
