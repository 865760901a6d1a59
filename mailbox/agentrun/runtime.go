package agentrun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
)

// Config makes a [Runtime].
type Config struct {
	// Agent returns what a run is executed with. Checkpoints are set by the Runtime; Config.Listen of the agent is called for each event that the Runtime
	// emits. An agent that is not known is an agent.ErrNoAgent, and no retry follows. Required.
	Agent func(ctx context.Context, j *mailbox.Job) (agent.Config, error)
	// Requeue queues a request for what a run was sent and had no time to read: Mailbox.SubmitBackground. Without
	// it the thread's next run reads it.
	Requeue func(ctx context.Context, r mailbox.Request) (mailbox.Submission, error)
	// Patience is how long a run waits for a decision or for its tasks, from agent.Waiting.Since on; 0 is for ever. When that is
	// over, and nothing has come, the mailbox ends the run as cancelled. Nil lets all runs wait for ever. It is asked at each
	// checkpoint of a run that waits, and answers the same for the same wait.
	Patience func(run agent.Record, w agent.Waiting) time.Duration
}

// Runtime is a mailbox.Runtime, mailbox.Steerer and mailbox.Judge. Make one with [New].
type Runtime struct {
	cfg  Config
	live sync.Map // of executions under way: an *activity by run
}

// activity is one execution.
type activity struct {
	agent  *agent.Agent
	keep   *keeper
	thread string
}

var (
	_ mailbox.Runtime = (*Runtime)(nil)
	_ mailbox.Steerer = (*Runtime)(nil)
	_ mailbox.Judge   = (*Runtime)(nil)
)

// New checks the config and makes a Runtime.
func New(cfg Config) (*Runtime, error) {
	if cfg.Agent == nil {
		return nil, errors.New("agentrun: Config.Agent is nil: name the agent that executes a run")
	}
	return &Runtime{cfg: cfg}, nil
}

// Run implements mailbox.Runtime.
func (r *Runtime) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	k, err := open(ctx, j, func() error { return context.Cause(ctx) })
	if err == nil {
		err = k.askAgain(ctx, &j.Request)
	}
	if err != nil {
		return mailbox.Result{}, err
	}
	k.patience = r.cfg.Patience
	req, refused, err := k.request(j)
	if err != nil {
		return mailbox.Result{}, err
	}
	if req == nil {
		return k.asItStands(j), refused
	}
	if refused != nil {
		j.Emit(mailbox.EventRefused, []byte(refused.Error()))
	}
	a, err := r.agent(ctx, j, k)
	if err != nil {
		return mailbox.Result{}, err
	}
	r.live.Store(j.Run.ID, &activity{agent: a, keep: k, thread: j.Dispatch.Thread})
	inner, cancel := continued(ctx)
	out, err := a.Run(inner, *req)
	cancel()
	r.live.Delete(j.Run.ID)
	after := context.WithoutCancel(ctx)
	r.requeue(after, j, k.left(after))
	return k.outcome(out, err)
}

// continued is a context that ends with ctx, because of agent.ErrContinued unless the cause is
// mailbox.ErrStopped: another process continues the run then.
func continued(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if !errors.Is(cause, mailbox.ErrStopped) {
			cause = fmt.Errorf("%w: %w", agent.ErrContinued, cause)
		}
		cancel(cause)
	})
	return inner, func() { stop(); cancel(nil) }
}

// agent makes the agent of an execution.
func (r *Runtime) agent(ctx context.Context, j *mailbox.Job, k *keeper) (*agent.Agent, error) {
	cfg, err := r.cfg.Agent(ctx, j)
	if err != nil {
		return nil, fmt.Errorf("agentrun: agent %.80q: %w", j.Run.Agent, Classify(err))
	}
	k.mode = cfg.ToolMode
	cfg.Checkpoints, cfg.AgentID = k, cmp.Or(cfg.AgentID, j.Run.Agent)
	if c, ok := cfg.Compactor.(interface{ Reload(thread string) }); ok {
		c.Reload(j.Dispatch.Thread) // another process may have executed the run before
	}
	listen := cfg.Listen
	cfg.Listen = func(ctx context.Context, e agent.Event) {
		if data, err := json.Marshal(e); err == nil {
			j.Emit(string(e.Type), data)
		}
		if listen != nil {
			listen(ctx, e)
		}
	}
	a, err := agent.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", mailbox.ErrPermanent, err)
	}
	return a, nil
}

// request is what the agent is asked for, or nil when nothing is left to do. Refused has the decisions that it leaves out.
func (k *keeper) request(j *mailbox.Job) (req *agent.Request, refused, err error) {
	extras, err := DecodeExtras(j.Request.Extras)
	if err != nil {
		return nil, nil, err
	}
	input, err := messages(j.Request.Messages)
	if err != nil {
		return nil, nil, err
	}
	latest := k.thread.Run
	// The same dispatch again: it had begun before its process ended, or it failed.
	again := latest.DispatchID == j.Dispatch.ID
	continues := latest.RunID == j.Run.ID && (latest.Status == agent.StatusRunning || latest.Status == agent.StatusWaiting)
	k.forgetAsked(input)
	fresh := slices.DeleteFunc(input, func(m abi.Message) bool { return k.knows(m.ID) })
	decided, late := admit(k.thread, j.Run.ID, decisions(j.Request.Decisions))
	if len(late) > 0 && !again {
		refused = refusal(late)
	}
	broken := continues && latest.Status == agent.StatusRunning // its process ended
	if len(fresh) == 0 && len(decided) == 0 && !again && !broken {
		return nil, refused, nil
	}
	req = &agent.Request{
		ThreadID: j.Dispatch.Thread, Messages: fresh, Decisions: decided, FrontendTools: extras.FrontendTools, Override: extras.Override,
		ParentRunID: j.Run.Parent, DispatchID: j.Dispatch.ID, SessionID: j.Dispatch.Instance,
		Mode: abi.RunMode(j.Request.Mode), Adapter: j.Request.Adapter, Origin: j.Request.Origin,
		TransportRequestID: j.Request.TransportRequestID, SenderID: j.Request.SenderID,
		DispatchIDHint: j.Request.DispatchIDHint, ParentThreadID: j.Request.ParentThreadID,
	}
	if continues {
		req.ContinueRunID = j.Run.ID // with the agent that it was handed to
	} else {
		req.RunID, req.AgentID = j.Run.ID, j.Run.Agent
	}
	return req, refused, nil
}

// forgetAsked forgets accepted messages that the request brings: they were sent to a run that had ended.
func (k *keeper) forgetAsked(input []abi.Message) {
	asked := func(m abi.Message) bool {
		return k.seqs[m.ID] == 0 && slices.ContainsFunc(input, func(o abi.Message) bool { return o.ID == m.ID })
	}
	k.accepted = slices.DeleteFunc(k.accepted, asked)
	var held []abi.Notice
	for _, n := range k.thread.Held {
		before := len(n.Messages)
		n.Messages = slices.DeleteFunc(slices.Clone(n.Messages), asked)
		if before == 0 || len(n.Messages) > 0 {
			held = append(held, n)
		}
	}
	k.thread.Held = held
}

// Duplicate is the termination of a run whose request brought nothing new: its messages were
// read by a run before.
const Duplicate = "duplicate"

// asItStands is the result of a run that has nothing to do, or not what was asked for.
func (k *keeper) asItStands(j *mailbox.Job) mailbox.Result {
	if latest := k.thread.Run; latest.RunID == j.Run.ID && latest.Status == agent.StatusWaiting {
		return k.result(latest)
	}
	return mailbox.Result{Status: mailbox.RunDone, Termination: Duplicate}
}

// outcome is what the mailbox receives of a run.
func (k *keeper) outcome(out agent.Result, err error) (mailbox.Result, error) {
	result := mailbox.Result{Response: out.Response, Totals: totals(&k.thread.Run)}
	switch {
	case err != nil && limitedUntil(err) > 0:
		return result, mailbox.Postpone(time.Now().Add(limitedUntil(err)), mailbox.WaitRate, err)
	case err != nil:
		if out.Termination.Type == agent.Cancelled {
			result.Termination = mailbox.TerminationCancelled
		}
		return result, Classify(err)
	case out.Status == agent.StatusWaiting:
		result.Tickets = tickets(out.Tickets)
		result.Status, result.Wait, result.WaitUntil = mailbox.RunWaiting, string(out.Wait), k.until(k.thread.Run)
	default:
		result.Status, result.Termination = mailbox.RunDone, out.Termination.Reason()
	}
	return result, nil
}

// limitedUntil returns how long a provider asks to wait that refused a request because of its rate, and 0 for other errors.
func limitedUntil(err error) time.Duration {
	var failure *llm.Error
	if !errors.As(err, &failure) || failure.Kind != llm.KindRateLimited && failure.Kind != llm.KindOverloaded {
		return 0
	}
	return failure.RetryAfter
}

// Classify marks an error of a run as mailbox.ErrPermanent when no retry fixes it: a
// model that refuses the request, the credentials or the content, or that does not exist, an agent that is not known, and requests that do
// not fit their thread. All else may pass.
func Classify(err error) error {
	var failure *llm.Error
	switch {
	case err == nil, errors.Is(err, mailbox.ErrPermanent):
		return err
	case errors.Is(err, agent.ErrMessages), errors.Is(err, agent.ErrNoTicket), errors.Is(err, agent.ErrNoAgent):
	case errors.As(err, &failure):
		switch failure.Kind {
		case llm.KindContextOverflow, llm.KindInvalidRequest, llm.KindUnauthorized, llm.KindModelNotFound, llm.KindContentFiltered:
		default:
			return err
		}
	default:
		return err
	}
	return fmt.Errorf("%w: %w", mailbox.ErrPermanent, err)
}
