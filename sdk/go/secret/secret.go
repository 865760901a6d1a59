// Package secret names credentials that the operator grants. A guest never sees a
// value: it writes a handle into a header of a request, and the host fills it in on the way
// out, if the request goes where the operator lets that secret go.
//
// # Concurrency
//
// The functions are safe for concurrent use.
//
// # Errors
//
// The functions have none. A handle that stands where it may not, or a secret that was not
// granted, is the error of the request.
package secret

// Ref is the handle of a secret: "Bearer " + secret.Ref("TOKEN").
func Ref(name string) string { return "{{secret." + name + "}}" }

// Basic is the handle for the base64 of a secret of the form user:password: "Basic " +
// secret.Basic("LOGIN").
func Basic(name string) string { return "{{basic." + name + "}}" }
