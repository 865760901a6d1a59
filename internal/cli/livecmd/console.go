package livecmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/serve"
)

// console shows a live run: the answer on standard output, all else in lines on standard error. What the run brings is
// foreign text, and cannot drive a terminal. It is safe for concurrent use.
type console struct {
	out, err io.Writer
	// raw writes the answer as it is: no terminal shows it.
	raw bool
	// dim shows reasoning.
	dim         bool
	quiet, json bool
	thread      bool // names a thread with which the next run continues

	mu sync.Mutex
	// open is an answer whose line has not ended, on a terminal that standard error shares; thinking is reasoning.
	open, thinking bool
	// answered is set when the current step has written text.
	answered bool
}

func newConsole(s command.Streams, o Options) *console {
	return &console{
		out: s.Out, err: s.Err, raw: !term.IsTerminal(s.Out), quiet: o.Quiet, json: o.JSON,
		dim: term.IsTerminal(s.Err) && os.Getenv("NO_COLOR") == "" && !o.Quiet && !o.JSON,
	}
}

// say prints a line on standard error.
func (c *console) say(format string, args ...any) {
	if c.quiet {
		return
	}
	c.line(term.Visible(fmt.Sprintf(format, args...)))
}

// line prints a line also when the console is quiet. Text must be fit for a terminal.
func (c *console) line(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breakLine()
	fmt.Fprintln(c.err, text)
}

// breakLine ends what stands on the line of the terminal. The caller holds the lock.
func (c *console) breakLine() {
	if c.thinking {
		fmt.Fprint(c.err, "\x1b[0m\n")
	}
	if c.open {
		fmt.Fprintln(c.out)
	}
	c.thinking, c.open = false, false
}

// end ends the answer's line.
func (c *console) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breakLine()
}

// text writes a part of the answer.
func (c *console) text(delta string) {
	if delta == "" || c.json {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.thinking {
		c.breakLine()
	}
	c.answered, c.open = true, !strings.HasSuffix(delta, "\n")
	if !c.raw {
		delta = term.Visible(delta)
	}
	fmt.Fprint(c.out, delta)
}

// reasoning writes a part of the model's reasoning, dimmed, if standard error is a terminal.
func (c *console) reasoning(delta string) {
	if delta == "" || !c.dim {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.thinking {
		c.breakLine()
		fmt.Fprint(c.err, "\x1b[2m")
		c.thinking = true
	}
	fmt.Fprint(c.err, term.Visible(delta))
}

// step begins a new part of the answer.
func (c *console) step() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breakLine()
	c.answered = false
}

// answer writes the answer as a whole, unless it was streamed.
func (c *console) answer(text string) {
	c.mu.Lock()
	streamed := c.answered
	c.mu.Unlock()
	if !streamed {
		c.text(text)
	}
	c.end()
}

// event writes an event as a line of JSON, if that was asked for.
func (c *console) event(e serve.Event) {
	if !c.json {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	text := e.JSON()
	if !c.raw {
		text = term.Visible(text) // it is JSON still
	}
	fmt.Fprintln(c.out, text)
}

// sum prints what a run has cost.
func (c *console) sum(run mailbox.Run, r *agent.Record) {
	text := fmt.Sprintf("%s, %s tokens in, %s out", term.Counted(r.Steps, "step"), term.Thousands(r.Usage.PromptTokens), term.Thousands(r.Usage.CompletionTokens))
	if r.Cost > 0 {
		text += fmt.Sprintf(", %.4f USD", r.Cost)
	}
	if c.thread {
		text += "; continue with --thread " + run.Thread
	}
	c.say("%s", text)
}

// recordOf reads what the mailbox knows of a run.
func recordOf(run mailbox.Run, r *agent.Record) *agent.Record {
	_ = json.Unmarshal(run.Data, r) // a run that never began has none
	return r
}

// log is for lines that are fit for a terminal.
func (c *console) log() io.Writer { return consoleLog{c} }

type consoleLog struct{ c *console }

func (l consoleLog) Write(p []byte) (int, error) {
	l.c.line(term.Visible(strings.TrimRight(string(p), "\n")))
	return len(p), nil
}
