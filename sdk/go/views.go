//go:build !wasip1

package mortise

// newViews returns room for the views of n messages.
func newViews(n int) (*messageList, Messages) { return new(messageList), make(Messages, n) }
