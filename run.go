package mortise

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/recall"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/thread"
)

// Events of a run's stream besides those of package agent. Their data is JSON: a
// [thread.Decision] and a [compaction.Event].
const (
	EventPlugin     = "plugin"
	EventCompaction = "compaction"
)

// runs are the executions of runs, observed.
type runs struct {
	*agentrun.Runtime

	r *Runtime
}

// Run implements mailbox.Runtime.
func (x runs) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	name := j.Run.Agent
	if now, ok := ctx.Value(setupKey{}).(*setup); ok {
		name = cmp.Or(name, now.byName)
	}
	ctx, end := x.r.observers.run(ctx, name, j)
	result, err := x.Runtime.Run(ctx, j)
	end(result, err)
	return result, err //nolint:wrapcheck // the run's own
}

// agentOf configures the agent of one execution.
func (r *Runtime) agentOf(ctx context.Context, j *mailbox.Job) (agent.Config, error) {
	now, ok := ctx.Value(setupKey{}).(*setup)
	if !ok {
		return agent.Config{}, errors.New("mortise: the execution has no agents") // the mailbox observes each
	}
	name := cmp.Or(j.Run.Agent, now.byName)
	p, err := r.profile(ctx, now, j, name)
	if err != nil {
		return agent.Config{}, err
	}
	own := now.agents[name]
	out := agent.Config{
		Profile: agent.Profile{Model: p.Model, Phases: p.Phases, Tools: p.Tools, SystemPrompt: p.SystemPrompt, ModelName: p.ModelName, Override: p.Override},
		AgentID: name, Limits: agent.Limits{MaxRounds: own.MaxRounds, Stop: own.Stop}, Inference: agent.Inference{Cost: own.Cost, Retry: own.Retry, Breaker: own.Breaker, Observe: r.observers.inference},
		Execution: agent.Execution{ToolTimeout: own.ToolTimeout, ToolContext: background.ToolContext},
		Notifications: agent.Notifications{
			Pending: r.tasks.HasBlocking,
			Words:   r.cfg.Words,
			Take:    func(ctx context.Context, thread string) (agent.Delivery, error) { return r.inbox.Take(ctx, thread) },
		},
		Resolve: func(ctx context.Context, id string) (agent.Profile, error) { return r.profile(ctx, now, j, id) },
		Listen:  func(ctx context.Context, e agent.Event) { r.listen(ctx, j, e) },
		Logger:  r.cfg.Logger,
	}
	if r.compactor != nil {
		out.Compactor = r.compactor
	}
	return out, nil
}

// profile is an agent as an execution sees it.
func (r *Runtime) profile(ctx context.Context, now *setup, j *mailbox.Job, name string) (agent.Profile, error) {
	own, ok := now.agents[name]
	if !ok {
		return agent.Profile{}, fmt.Errorf("%w %.120q", agent.ErrNoAgent, name)
	}
	hooks, err := now.hooks(own, r.cfg.Logger, []phases.Plugin{r.tasks.Plugin()}, func(rec phases.Record) { r.decided(j, &rec) })
	if err != nil {
		return agent.Profile{}, err
	}
	all, err := r.toolsOf(context.WithoutCancel(ctx), now, j, name)
	if err != nil {
		return agent.Profile{}, err
	}
	return agent.Profile{
		Model: own.Model, Phases: hooks, Tools: tools{all, name, r.observers}, SystemPrompt: own.SystemPrompt, ModelName: own.ModelName, Override: own.Override,
	}, nil
}

// toolsOf adds to an agent's tools those with which it manages its thread's background
// tasks, for as long as there are such tasks, and the one that reads large outputs.
func (r *Runtime) toolsOf(ctx context.Context, now *setup, j *mailbox.Job, name string) (agent.Tools, error) {
	id, a := j.Dispatch.Thread, now.agents[name]
	manage, err := r.tasks.Tools(background.ToolsConfig{
		Thread: id, Agent: name, ParentThread: j.Request.ParentThreadID,
		Stop: func(run string) {
			_, _ = r.box.CancelRun(ctx, run) // a run that is over needs no end
		},
	})
	if err != nil {
		return nil, err
	}
	known := func() bool {
		return slices.ContainsFunc(r.tasks.List(id), func(i background.Info) bool { return i.Class != background.Housekeeping })
	}
	var more agent.Tools
	if r.cfg.ThreadTools != nil {
		more = r.cfg.ThreadTools(id)
	}
	read := agent.Tools(r.outputs.Tools(id))
	if !now.masks && len(a.Background) == 0 {
		read = agent.ToolsWhile(read, known) // it is offered always where a thread may have handles of its past
	}
	own := a.Tools
	if len(a.Background) > 0 && own != nil {
		own = inBackground{own: own, names: a.Background, thread: id, tasks: r.tasks}
	}
	return agent.LayerTools(own, more, read, agent.ToolsWhile(manage, known), r.recall(id)), nil
}

// recall reads what compactions took out of a thread's view. It is offered from the first one on, when the provider's
// cache is lost anyway.
func (r *Runtime) recall(id string) agent.Tools {
	tool := recall.Tool{Log: func(ctx context.Context) ([]abi.Message, error) { return thread.On(r.cfg.Store).Messages(ctx, id) }}
	return agent.ToolsWhile(tool, func() bool { return r.compactor != nil && len(r.compactor.Markers(id)) > 0 })
}

// listen passes the events of a run on, and begins and ends its record.
func (r *Runtime) listen(ctx context.Context, j *mailbox.Job, e agent.Event) {
	switch e.Type {
	case agent.EventRunStart:
		r.enter(ctx, j)
		identity := abi.RunIdentity{ThreadID: e.ThreadID, RunID: e.RunID}
		if e.Identity != nil {
			identity = *e.Identity
		}
		r.record(func(s Recorder) error { return s.Start(thread.RunStart{At: e.At, Run: identity}) })
	case agent.EventRunFinish:
		r.leave(j)
		r.record(func(s Recorder) error { return s.End(e.RunID, endOf(e)) })
	case agent.EventToolCallResumed:
		if e.Ticket != nil && e.Ticket.Decision != nil {
			r.record(func(s Recorder) error { return s.Add(e.RunID, answerOf(e.Ticket, e.Step)) })
		}
	default: // decides nothing
	}
	r.observers.event(ctx, e)
}

// answerOf is what was decided about a call that waited.
func answerOf(k *agent.Ticket, step int) thread.Decision {
	d := k.Decision
	choice := cmp.Or(d.Choice, string(abi.GateAllow))
	if d.Choice == "" && d.Action == agent.ActionCancel {
		choice = "deny"
	}
	answer := &thread.Answer{Ticket: k.ID, Choice: choice, Reason: d.Reason[:min(len(d.Reason), maxDetail)], By: d.By}
	return thread.Decision{At: k.UpdatedAt, Step: step, CallID: k.Call.ID, Tool: k.Call.Name, Answer: answer}
}

// maxDetail bounds the text of a record's end, and of the reason of an answer, in bytes.
const maxDetail = 1024

func endOf(e agent.Event) thread.RunEnd {
	end := thread.RunEnd{At: e.At, Steps: e.Step}
	if e.Outcome != nil {
		t := e.Outcome.Termination
		end.Type, end.Code, end.Steps = string(t.Type), t.Code, e.Outcome.Steps
		end.Detail = t.Detail[:min(len(t.Detail), maxDetail)]
	}
	return end
}

// decided passes on what a plugin's hook came to.
func (r *Runtime) decided(j *mailbox.Job, rec *phases.Record) {
	if rec.Plugin == background.PluginName {
		return
	}
	r.observers.hook(rec)
	entry := thread.DecisionOf(rec)
	emit(j, EventPlugin, entry)
	r.record(func(s Recorder) error { return s.Add(j.Run.ID, entry) })
}

// compacted passes on what happened to a thread's compaction, to its run if it has one.
func (r *Runtime) compacted(idle context.Context, e compaction.Event) {
	r.mu.Lock()
	x := r.live[e.Thread]
	r.mu.Unlock()
	if x == nil {
		r.observers.compaction(idle, e)
		return
	}
	x.observe(e)
	emit(x.job, EventCompaction, e)
	r.record(func(s Recorder) error { return s.Add(x.job.Run.ID, thread.Decision{At: e.At, Compaction: &e}) })
}

func emit(j *mailbox.Job, kind string, v any) {
	if data, err := json.Marshal(v); err == nil {
		j.Emit(kind, data)
	}
}

// Recorder keeps what plugins and policies decide in runs. A [thread.Recorder] is one. It is safe for concurrent use.
type Recorder interface {
	Start(s thread.RunStart) error
	Add(run string, d thread.Decision) error
	End(run string, e thread.RunEnd) error
}

// record writes to Config.Records. Runs do not fail when that fails.
func (r *Runtime) record(write func(Recorder) error) {
	if r.cfg.Records == nil {
		return
	}
	if err := write(r.cfg.Records); err != nil {
		r.cfg.Logger.Warn("decision record is not complete", "error", err)
	}
}

// execution is a run that this process executes.
type execution struct {
	job *mailbox.Job
	// observe passes what happens to a compaction to the observers, with the context of the run.
	observe func(compaction.Event)
}

func (r *Runtime) enter(ctx context.Context, j *mailbox.Job) {
	ctx = context.WithoutCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[j.Dispatch.Thread] = &execution{job: j, observe: func(e compaction.Event) { r.observers.compaction(ctx, e) }}
}

func (r *Runtime) leave(j *mailbox.Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.live[j.Dispatch.Thread]; x != nil && x.job == j {
		delete(r.live, j.Dispatch.Thread)
	}
}
