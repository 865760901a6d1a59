// Package http makes requests to the hosts that the operator grants. Importing it
// means that the guest does not load without the grant http.
//
// The host makes the request: it checks the address, follows and checks redirects,
// fills in secrets (see package secret) and keeps the budgets. Requests take real time
// of the call, whose deadline is short by default.
//
// Natively, the package asks the function that a test gives to Provide.
//
// # Concurrency
//
// A guest runs one call at a time, and so does this package.
//
// # Errors
//
// [Do] returns a *capability.Error when there is no response: Denied when the grant does
// not allow it, Quota when a budget is used up, TooLarge, Invalid, Timeout, and Failed when
// the server was not reached. A status such as 404 is a response and no error.
package http

// Request is what to ask for.
type Request struct {
	// Method is GET when it is empty.
	Method string
	URL    string
	// Header values may hold handles of secrets.
	Header map[string]string
	Body   []byte
}

// Response is what a server answered.
type Response struct {
	Status int
	// Header has names in lower case. It is empty unless the operator lets the guest
	// read response headers.
	Header map[string]string
	// Body belongs to the caller. A secret that the server sent back is replaced by
	// its handle.
	Body []byte
}

// Do makes a request.
func Do(r Request) (Response, error) { return do(r) }
