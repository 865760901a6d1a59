//go:build !wasip1

package http

import "github.com/mortise-dev/mortise/sdk/go/capability"

var server func(Request) (Response, error)

// Provide sets what answers the requests of a native test, and returns a function that
// takes it back. Without it everything is denied. It sees the handles of secrets as the
// guest wrote them. It does not exist in a guest. Tests that use it do not run in parallel.
func Provide(answer func(Request) (Response, error)) (restore func()) {
	before := server
	server = answer
	return func() { server = before }
}

func do(r Request) (Response, error) {
	if server == nil {
		return Response{}, &capability.Error{Code: capability.Denied, Text: "denied: http_fetch: give the test a server with http.Provide"}
	}
	return server(r)
}
