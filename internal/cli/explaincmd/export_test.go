package explaincmd

import "github.com/mortise-dev/mortise/thread"

// Words is what explain prints of a decision.
func Words(e *thread.Decision) []string { return words(e) }
