//go:build !wasip1

package plugin

import mortise "github.com/mortise-dev/mortise/sdk/go"

// newEvent returns room for an event.
func newEvent() *mortise.Event { return new(mortise.Event) }
