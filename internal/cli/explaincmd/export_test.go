package explaincmd

import (
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/thread"
)

// Words is what explain prints of a decision.
func Words(e *thread.Decision) []string { return words(e) }

// Table prints a record.
func Table(t *term.Table, r *thread.Record) { explainTable(t, r, false) }
