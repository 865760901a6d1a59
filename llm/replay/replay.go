package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// ErrNoAnswer means that the recording has ended, or continues with something
// other than an answer.
var ErrNoAnswer = errors.New("replay: the recording has no further answer here")

// Config sets up a Replay. Zero fields mean defaults.
type Config struct {
	// Pace is how long each answer takes, not at all by default.
	Pace time.Duration
}

// Turn is the input of one run.
type Turn struct {
	// Messages are from the user, with system messages among them if they were
	// recorded there. There are none when the recording continues with an answer.
	Messages []abi.Message
	// Answered reports whether an answer was recorded. Without one there is nothing
	// to run: the messages only have to be kept.
	Answered bool
}

// Replay is a position in a recorded conversation. It implements llm.Model.
type Replay struct {
	entries []transcript.Entry
	// results finds the recorded result of a call by id.
	results map[string]int
	system  []abi.Message
	tools   []abi.Tool
	pace    time.Duration

	mu sync.Mutex
	// cursor is the entry that comes next. It never stands at a tool result:
	// the results of an answer are passed together with it.
	cursor int
}

// New returns a Replay at the beginning of the conversation, behind its leading
// system messages. The conversation must be valid, as [transcript.Read] returns
// it, and must not be changed while the Replay is used.
func New(c transcript.Conversation, cfg Config) (*Replay, error) {
	if cfg.Pace < 0 {
		return nil, fmt.Errorf("replay: config: Pace is negative: %v", cfg.Pace)
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("replay: conversation %s: %w", c.ID, err)
	}
	r := &Replay{entries: c.Entries, results: map[string]int{}, pace: cfg.Pace}
	for r.cursor < len(c.Entries) && c.Entries[r.cursor].Message.Role == abi.RoleSystem {
		r.system = append(r.system, c.Entries[r.cursor].Message)
		r.cursor++
	}
	for i := range c.Entries {
		if m := &c.Entries[i].Message; m.Role == abi.RoleTool {
			r.results[m.ToolCallID] = i
		}
	}
	r.tools = recordedTools(c.Entries)
	return r, nil
}

// SystemPrompt returns the text of the leading system messages, joined with
// blank lines.
func (r *Replay) SystemPrompt() string {
	texts := make([]string, len(r.system))
	for i := range r.system {
		texts[i] = r.system[i].Text()
	}
	return strings.Join(texts, "\n\n")
}

// Next returns the input of the next run and moves behind it. It reports false
// at the end of the recording.
func (r *Replay) Next() (Turn, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cursor == len(r.entries) {
		return Turn{}, false
	}
	return Turn{Messages: r.input(), Answered: r.cursor < len(r.entries)}, true
}

// Steering returns the messages that stand between the results given last and
// the next answer, and moves behind them. A driver puts them into the inbox of
// its run before the next inference. There are none at most places.
//
// Between two runs the same messages come from [Replay.Next].
func (r *Replay) Steering() []abi.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.input()
}

// input returns the messages up to the next answer.
func (r *Replay) input() []abi.Message {
	var ms []abi.Message
	for ; r.cursor < len(r.entries); r.cursor++ {
		m := r.entries[r.cursor].Message
		if m.Role == abi.RoleAssistant {
			break
		}
		ms = append(ms, m)
	}
	return ms
}

// Infer returns the next recorded answer, whatever the request says. When ctx
// ends during the pace the same answer comes again the next time.
func (r *Replay) Infer(ctx context.Context, req llm.Request) (*abi.Response, error) {
	if err := r.wait(ctx); err != nil {
		return nil, inferError(req.Model, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cursor == len(r.entries) || r.entries[r.cursor].Message.Role != abi.RoleAssistant {
		return nil, inferError(req.Model, ErrNoAnswer)
	}
	e := &r.entries[r.cursor]
	r.cursor += 1 + len(e.Message.ToolCalls)
	out := &abi.Response{Model: e.Model, Message: e.Message, StopReason: abi.StopEndTurn}
	if out.Model == "" {
		out.Model = req.Model
	}
	if len(e.Message.ToolCalls) > 0 {
		out.StopReason = abi.StopToolUse
	}
	if e.Usage != nil {
		usage := *e.Usage
		out.Usage = &usage
	}
	return out, nil
}

func (r *Replay) wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil || r.pace == 0 {
		return err
	}
	timer := time.NewTimer(r.pace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func inferError(model string, err error) *llm.Error {
	e := &llm.Error{Kind: llm.KindInvalidRequest, Model: model, Err: err}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.Kind = llm.KindTimeout
	case errors.Is(err, context.Canceled):
		e.Kind = llm.KindCancelled
	}
	return e
}

// Seek moves behind so many messages of the recording, as [Replay.Position] counts them. It refuses to
// stand before the first run or between an answer and its results.
func (r *Replay) Seek(done int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if done < len(r.system) || done > len(r.entries) {
		return fmt.Errorf("replay: seek to %d: the recording has messages from %d to %d", done, len(r.system), len(r.entries))
	}
	if done < len(r.entries) && r.entries[done].Message.Role == abi.RoleTool {
		return fmt.Errorf("replay: seek to %d: a result stands there; its answer and all results are one", done)
	}
	r.cursor = done
	return nil
}

// Time returns when the newest message that is behind was recorded, the zero time if none of them has a time.
func (r *Replay) Time() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := r.cursor - 1; i >= 0; i-- {
		if at := r.entries[i].At; !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// Position returns how many messages of the recording are behind, and how many
// it has. The results of an answer count together with it.
func (r *Replay) Position() (done, total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cursor, len(r.entries)
}
