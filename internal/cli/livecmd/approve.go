package livecmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/term"
)

// Values of --approve.
const (
	approveAsk    = "ask"
	approveAlways = "always"
	approveNever  = "never"
)

// approvals decides about calls that wait: by asking the user, or as --approve says.
type approvals struct {
	mode  string
	out   *console
	in    *bufio.Reader
	hint  bool // that no person can be asked
	every bool // the user allowed all further calls
}

func newApprovals(s command.Streams, mode string, out *console) (*approvals, error) {
	a := &approvals{mode: mode, out: out, in: bufio.NewReader(s.In)}
	can := term.IsTerminal(s.In) && term.IsTerminal(s.Err)
	switch {
	case !slices.Contains([]string{"", approveAsk, approveAlways, approveNever}, mode):
		return nil, fmt.Errorf("--approve %.40q: must be ask, always or never", mode)
	case mode == approveAsk && !can:
		return nil, errors.New("--approve ask: standard input and standard error are no terminal; write --approve always or --approve never")
	case mode == "" && can:
		a.mode = approveAsk
	case mode == "":
		a.mode, a.hint = approveNever, true
	}
	return a, nil
}

// decide decides about each call that waits.
func (a *approvals) decide(ctx context.Context, tickets []agent.Ticket) ([]agent.Decision, error) {
	var out []agent.Decision
	for i := range tickets {
		t := &tickets[i]
		if t.Status != agent.TicketOpen {
			continue
		}
		d := agent.Decision{Target: t.ID, Action: agent.ActionResume}
		var err error
		switch {
		case a.mode == approveNever:
			a.refuse(t, &d)
		case a.mode == approveAsk && !a.every:
			err = a.ask(ctx, t, &d)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// refuse denies a call without asking.
func (a *approvals) refuse(t *agent.Ticket, d *agent.Decision) {
	deny(d, "no one can approve this call")
	a.out.line(fmt.Sprintf("denied: %s", term.Plain(t.Call.Name, 100)))
	if a.hint {
		a.out.line("  it needs an approval, and standard input is no terminal; --approve always allows such calls, --approve never denies them without this hint")
		a.hint = false
	}
}

// deny is what the API's action deny does.
func deny(d *agent.Decision, reason string) {
	d.Action, d.Reason, d.Result = agent.ActionCancel, reason, "Denied: "+reason
}

// ask shows a call and reads the user's decision.
func (a *approvals) ask(ctx context.Context, t *agent.Ticket, d *agent.Decision) error {
	a.out.line(question(t))
	for {
		a.out.line("a [ANSWER] = allow, d [REASON] = deny, all = allow this and all further calls")
		line, err := a.read(ctx)
		if errors.Is(err, io.EOF) {
			deny(d, "the user left")
			return nil
		}
		if err != nil {
			return err
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		switch word {
		case "a", "y", "allow", "yes":
			d.Result = answerOf(rest)
			return nil
		case "all":
			a.every = true
			return nil
		case "d", "n", "deny", "no":
			if rest == "" {
				rest = "the user denied the call"
			}
			deny(d, rest)
			return nil
		}
	}
}

// answerOf is what a call gets that asks for more than to be allowed: a JSON value, or text.
func answerOf(text string) any {
	var v any
	if text == "" {
		return nil
	}
	if json.Unmarshal([]byte(text), &v) == nil {
		return v
	}
	return text
}

// Bounds of the arguments that a question shows, in bytes.
const (
	maxQuestion  = 16 << 10
	questionTail = 2 << 10
)

// question shows a call: its name, who asks and why, and its arguments, with nothing in them hidden.
func question(t *agent.Ticket) string {
	var b strings.Builder
	fmt.Fprintf(&b, "approve? tool %s", term.OneLine(t.Call.Name))
	if t.By != "" {
		fmt.Fprintf(&b, ", plugin %s asks", term.OneLine(t.By))
	}
	for _, part := range []struct{ name, text string }{{"reason", t.Reason}, {"message", t.Message}} {
		if part.text != "" {
			fmt.Fprintf(&b, "\n  %s: %s", part.name, term.OneLine(part.text))
		}
	}
	if len(t.RewrittenBy) > 0 {
		fmt.Fprintf(&b, "\n  rewritten by: %s", term.OneLine(strings.Join(t.RewrittenBy, ", ")))
	}
	text := term.Exact(term.Indented(t.Call.Arguments))
	if n := len(text) - maxQuestion - questionTail; n > 0 {
		text = text[:maxQuestion] + fmt.Sprintf("\n    ... %d BYTES ARE NOT SHOWN ...\n", n) + text[len(text)-questionTail:]
	}
	fmt.Fprintf(&b, "\n  arguments:\n    %s", strings.ToValidUTF8(text, ""))
	return b.String()
}

// read reads a line. When ctx is done first, the read is left behind until standard input is closed.
func (a *approvals) read(ctx context.Context) (string, error) {
	type line struct {
		text string
		err  error
	}
	got := make(chan line, 1)
	go func() {
		text, err := a.in.ReadString('\n')
		got <- line{text, err}
	}()
	select {
	case l := <-got:
		return l.text, l.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
