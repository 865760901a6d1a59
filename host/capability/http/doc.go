// Package http grants requests over HTTP to guests: http_fetch(request, body) -> body block of "mortise:host/1", and http_request of
// Extism. The request is Extism's JSON {"url", "method", "headers"}; {{secret.NAME}} in a header is replaced on the way out.
//
// # Concurrency
//
// A Grant may be used by any number of hosts.
//
// # Errors
//
// What is wrong with a Grant is an error of Load, which names the field. A refused request is a code for the guest.
package http
