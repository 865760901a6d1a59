package check

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
)

// States of a check.
const (
	OK   = "ok"
	Warn = "warn"
	Fail = "fail"
)

// Finding is what a check came to.
type Finding struct {
	Check  string `json:"check"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// Fine is a check that found nothing.
func Fine(format string, args ...any) Finding {
	return Finding{State: OK, Detail: fmt.Sprintf(format, args...)}
}

// Warned is a check that found what may be wrong.
func Warned(hint, format string, args ...any) Finding {
	return Finding{State: Warn, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

// Failed is a check that failed, with the hint what to do.
func Failed(hint string, err error) Finding {
	return Finding{State: Fail, Detail: exit.Text(err), Hint: hint}
}

// Probe is one check.
type Probe struct {
	Name string
	Do   func(ctx context.Context) Finding
}

// Run makes all checks at once, each with a deadline.
func Run(ctx context.Context, checks []Probe, timeout time.Duration) []Finding {
	out := make([]Finding, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			out[i] = c.Do(ctx)
			if ctx.Err() != nil && out[i].State == Fail {
				out[i].Detail = fmt.Sprintf("no result within %s: %s", timeout, out[i].Detail)
			}
			out[i].Check = c.Name
		})
	}
	wg.Wait()
	return out
}

// Print prints findings as a table.
func Print(out io.Writer, found []Finding) error {
	t := term.NewTable(out)
	for _, f := range found {
		t.Row("%s\t%s\t%s", f.State, term.Plain(f.Check, 60), term.Whole(f.Detail))
		if f.Hint != "" {
			t.Row("\t\t%s", term.Whole(f.Hint))
		}
	}
	return t.End()
}
