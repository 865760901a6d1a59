// Package model asks a model that the program around the host grants. Importing it means that
// the guest does not load without the grant model.
//
// What is in the bytes is agreed upon between the guest and that program. How often a guest
// may ask within one call is bounded.
//
// Natively, the package asks the function that a test gives to Provide.
//
// # Concurrency
//
// A guest runs one call at a time, and so does this package.
//
// # Errors
//
// [Ask] returns a *capability.Error: Quota, TooLarge, Invalid for an empty request,
// Timeout, and Failed when the model did not answer.
package model

// Ask returns the model's answer to a request.
func Ask(request []byte) ([]byte, error) { return ask(request) }
