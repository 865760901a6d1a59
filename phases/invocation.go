package phases

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// Invocation is one execution of a tool that a plugin offers: what the plugin may know of
// the run, and what it wants done beyond its result. [Runtime.Invoke] makes one. It is
// safe for concurrent use.
type Invocation struct {
	// Run, Step and At are those of the call, MessagesTotal the length of the
	// conversation, which [Conversation] returns.
	Run           abi.RunIdentity
	Step          int
	At            time.Time
	MessagesTotal int

	r        *Runtime
	tool     string
	messages []abi.Message
	snapshot state.Snapshot

	mu     sync.Mutex
	plugin *plugin
	reply  *abi.Reply
	over   bool
}

type invocationKey struct{}

// Invoke prepares the execution of the frame's call. The tool must be called with
// [Invocation.Context]. What it replies is applied by [Runtime.Settle].
func (r *Runtime) Invoke(st *State, f Frame) *Invocation {
	i := &Invocation{
		Run: f.Run, Step: f.Step, At: r.cfg.Now(), MessagesTotal: len(f.Messages),
		r: r, messages: f.Messages, snapshot: st.store.Snapshot(),
	}
	if f.Call != nil {
		i.tool = f.Call.Name
	}
	return i
}

// Context returns a context of the tool, in which [InvocationOf] finds the invocation
// and [Conversation] the messages.
func (i *Invocation) Context(ctx context.Context) context.Context {
	return context.WithValue(context.WithValue(ctx, conversationKey{}, i.messages), invocationKey{}, i)
}

// InvocationOf returns the invocation that a tool was called for, or nil outside of a run.
func InvocationOf(ctx context.Context) *Invocation {
	i, _ := ctx.Value(invocationKey{}).(*Invocation)
	return i
}

// State returns the values of a plugin's keys when the call began, without the name
// prefix. Nothing may change them. A key that was never written is absent.
func (i *Invocation) State(plugin string) map[string]any {
	p := i.find(plugin)
	if p == nil {
		return nil
	}
	return p.values(i.snapshot)
}

// Reply is what the plugin that offers the tool wants done beyond the result: updates of
// its state, and effects. It is an error when the runtime has no such plugin, when the
// call is over, and the second time.
func (i *Invocation) Reply(plugin string, reply *abi.Reply) error {
	p := i.find(plugin)
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case p == nil:
		return fmt.Errorf("phases: the run has no plugin %.80q, whose tool replies with updates or effects; list it in Config.Plugins", plugin)
	case i.over:
		return errors.New("phases: the call of the tool is over")
	case i.reply != nil:
		return errors.New("phases: the tool has already replied")
	}
	i.plugin, i.reply = p, reply
	return nil
}

func (i *Invocation) find(name string) *plugin {
	for _, p := range i.r.plugins {
		if p.name == name {
			return p
		}
	}
	return nil
}

// end returns the reply, and takes no further one.
func (i *Invocation) end() (*plugin, *abi.Reply) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
	return i.plugin, i.reply
}

// Settle applies what a tool replied, all or none of it, as the reply of a hook of mode
// transform at after_tool_execute, which is the frame's phase. A value of an exclusive key
// that another call or plugin wrote since the call began is a conflict, and refuses the
// reply. The error is that of ctx or a [*HookError]; then nothing was applied. What became of
// the reply is recorded with the name of the tool as the handler.
func (r *Runtime) Settle(ctx context.Context, st *State, f Frame, i *Invocation) (Outcome, error) {
	from, reply := i.end()
	if noOpinion(reply) {
		return Outcome{Messages: f.Messages}, nil
	}
	p, err := r.enter(ctx, st, f)
	if err != nil {
		return Outcome{Messages: f.Messages}, err
	}
	defer p.leave()
	p.first = append(p.first, p.toolCall(from, i, reply))
	return p.end(ctx, p.commitReplies(ctx))
}

// toolCall is the call of a tool as that of a hook that has answered.
func (p *pass) toolCall(from *plugin, i *Invocation, reply *abi.Reply) *call {
	c := &call{hook: &hook{
		Hook: abi.Hook{Phase: p.frame.Phase, Mode: abi.ModeTransform, OnFailure: abi.FailRun},
		kind: toolHandler, plugin: from, name: from.name + "/" + i.tool,
	}}
	c.attempt, c.at, c.base, c.reply = 1, i.At, i.snapshot.Revision(), reply
	c.duration = p.r.cfg.Now().Sub(i.At)
	p.all = append(p.all, c)
	return c
}
