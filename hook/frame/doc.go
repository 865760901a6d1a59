// Package frame is what the client of hooks and its daemon share: length-prefixed frames, the place of the socket, and
// the policy file, from which the client answers when there is no daemon. The client is started at each event of an
// agent, so this package imports little.
//
// # Concurrency
//
// Functions are safe for concurrent use; values are not changed after they were read.
//
// # Errors
//
// A frame that is too large is [ErrTooLarge]. A folder, socket or peer that another user could control is [ErrForeign].
package frame
