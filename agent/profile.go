package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// HandoffKey is the state key that names the agent which continues the run: the
// key "agent" of a plugin "handoff". When it names another one than that at work, the
// run is handed over before its next step. The plugin declares it with thread scope,
// so that the next run of the thread begins with the same agent.
const HandoffKey = "handoff/agent"

// profile is an agent at work.
type profile struct {
	id       string
	client   *llm.Client
	phases   *phases.Runtime
	tools    Tools
	prompt   string
	model    string
	override *abi.InferenceOverride
}

func (a *Agent) profile(id string, p Profile) (profile, error) {
	if p.Phases == nil {
		return profile{}, errors.New("agent: Profile.Phases is missing")
	}
	client, err := llm.NewClient(llm.ClientConfig{
		Model: p.Model, Retry: a.cfg.Retry, Breaker: a.cfg.Breaker, Partials: a.cfg.Partials, Grace: a.cfg.Grace, Logger: a.cfg.Logger,
		Observe: a.cfg.Observe, Cost: a.cost,
	})
	if err != nil {
		return profile{}, fmt.Errorf("agent: %w", err)
	}
	if p.Tools == nil {
		p.Tools = noTools{}
	}
	return profile{
		id: id, client: client, phases: p.Phases, tools: p.Tools, prompt: p.SystemPrompt, model: p.ModelName, override: p.Override,
	}, nil
}

// ErrNoAgent is a request, or a handoff, to an agent that is not known. A Config.Resolve that does not know an agent returns it, too.
var ErrNoAgent = errors.New("there is no agent")

// resolve finds an agent by its id.
func (a *Agent) resolve(ctx context.Context, id string) (profile, error) {
	if id == "" || id == a.cfg.AgentID {
		return a.base, nil
	}
	if a.cfg.Resolve == nil {
		return profile{}, fmt.Errorf("%w %.120q", ErrNoAgent, id)
	}
	var p Profile
	err := recovered(func() (err error) {
		p, err = a.cfg.Resolve(ctx, id)
		return err
	})
	if err != nil {
		return profile{}, err
	}
	return a.profile(id, p)
}

// handedTo is the agent that the state names, or nothing.
func handedTo(state map[string]any) string {
	id, _ := state[HandoffKey].(string)
	return id
}

// handOff changes the agent if the state names another one.
func (r *run) handOff(ctx context.Context) (*Termination, error) {
	value, _ := r.state.Read(HandoffKey)
	id, _ := value.(string)
	if id == "" || id == r.id.AgentID {
		return nil, nil
	}
	next, err := r.agent.resolve(ctx, id)
	if err == nil {
		err = next.phases.Adopt(r.state)
	}
	if err != nil {
		return &Termination{Type: Blocked, Detail: fmt.Sprintf("handoff resolve failed: %v", err)}, nil
	}
	if err := r.who.phases.Deactivate(ctx, r.state, r.id); err != nil {
		return nil, err
	}
	r.who, r.id.AgentID, r.record.AgentID = next, id, id
	return nil, next.phases.Activate(ctx, r.state, r.id)
}
