package phases

import (
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// vet returns what the reply of a call proposes, or nil: then there is none, or it was refused.
func (p *pass) vet(c *call) *proposal {
	if c.attempt == 0 && c.fault == nil {
		return nil // in quarantine
	}
	c.verdict = verdict{err: c.fault}
	if c.fault != nil {
		p.fail(c)
		return nil
	}
	if noOpinion(c.reply) {
		return nil
	}
	v := vetter{r: p.r, limits: &p.r.cfg.Limits, hook: c.hook, frame: p.frame, left: p.r.cfg.Limits.ReplyBytes}
	proposal := v.vet(c.reply)
	if len(v.refused) > 0 {
		p.refuse(c, v.refused)
		return nil
	}
	return proposal
}

// settle decides what becomes of the reply of one call.
func (p *pass) settle(c *call) {
	proposal := p.vet(c)
	if proposal == nil {
		return
	}
	if c.attempt == 1 {
		switch with := p.collides(c, proposal); {
		case with != "" && c.hook.kind == toolHandler: // A tool does not run again.
			p.refuse(c, []Refusal{{What: "reply", Reason: with}})
			return
		case with != "":
			c.deferred = with
			return
		}
	}
	fork := p.draft.fork(c.hook.plugin.name)
	if refused := fork.apply(proposal); len(refused) > 0 {
		fork.tx.Discard()
		p.refuse(c, refused)
		return
	}
	fork.tx.Accept()
	p.accepted++
	c.applied, c.proposal, c.gate, c.order = fork.changes, proposal, proposal.gate, p.accepted
	p.draft = fork
	p.touch(c.hook.plugin.name, proposal)
}

func noOpinion(r *abi.Reply) bool {
	return r == nil || len(r.Updates) == 0 && len(r.Effects) == 0 && len(r.Actions) == 0 && r.Gate == nil
}

// apply applies all parts of a proposal, or returns why some could not be. The
// draft is then to be thrown away.
func (d *draft) apply(p *proposal) []Refusal {
	var refused []Refusal
	refuse := func(what string, err error) {
		refused = append(refused, Refusal{What: what, Reason: oneLine(err.Error(), d.limits.TextBytes)})
	}
	for i, u := range p.updates {
		if err := d.update(u); err != nil {
			refuse(fmt.Sprintf("update %d %q", i, u.key.short), err)
		}
	}
	if len(p.effects) >= indexFrom {
		d.buildIndex()
	}
	for i := range p.effects {
		if err := d.effect(&p.effects[i]); err != nil {
			refuse(fmt.Sprintf("effect %d %s", i, p.effects[i].Type), err)
		}
	}
	if len(p.actions) > 0 && len(refused) == 0 {
		if err := d.schedule(p.actions); err != nil {
			refuse("actions", err)
		}
	}
	return refused
}

// collides says with whom a proposal collides, or nothing: with an earlier reply
// of the phase, or with a commit since the hook was shown the state.
func (p *pass) collides(c *call, proposal *proposal) string {
	for _, u := range proposal.updates {
		if t, ok := p.keys[u.key.Key]; ok && (!t.shared || !u.shared()) {
			return fmt.Sprintf("state key %q was changed by %q", u.key.Name, t.by)
		}
		if !u.shared() && p.draft.tx.Base().Changed(u.key.Key) > c.base {
			return fmt.Sprintf("state key %q was changed by a commit from outside of the phase", u.key.Name)
		}
	}
	for i := range proposal.effects {
		e := &proposal.effects[i]
		o := p.objectOf(e)
		if t, ok := p.objects[o]; ok && o != (object{}) && (!t.shared || e.Type != abi.EffectPinMessage) {
			return fmt.Sprintf("%s was changed by %q", o, t.by)
		}
	}
	return ""
}

// object is what an effect changes so that a second effect on it has to see the first.
// The zero object is for effects that do not collide.
type object struct{ kind, id string }

// String names the object in a record.
func (o object) String() string {
	if o.id == "" {
		return "the " + o.kind
	}
	return fmt.Sprintf("%s %.80q", o.kind, o.id)
}

func (p *pass) objectOf(e *abi.Effect) object {
	switch {
	case e.Type == abi.EffectRewriteCall:
		return object{kind: "call"}
	case e.Type == abi.EffectReplaceResponse:
		return object{kind: "answer"}
	case e.Type == abi.EffectReplaceResult:
		return object{kind: "message", id: p.frame.ResultMessageID}
	case e.MessageID != "":
		return object{kind: "message", id: e.MessageID}
	default:
		return object{}
	}
}

func (u *update) shared() bool { return u.key.Shared(u.op) }

// touch remembers what an applied proposal changed.
func (p *pass) touch(by string, proposal *proposal) {
	for _, u := range proposal.updates {
		p.keys = touching(p.keys, u.key.Key, by, u.shared())
	}
	for i := range proposal.effects {
		e := &proposal.effects[i]
		if o := p.objectOf(e); o != (object{}) {
			p.objects = touching(p.objects, o, by, e.Type == abi.EffectPinMessage)
		}
	}
}

func touching[K comparable](m map[K]touch, k K, by string, shared bool) map[K]touch {
	if m == nil {
		m = make(map[K]touch)
	}
	t, ok := m[k]
	if !ok {
		t = touch{by: by, shared: true}
	}
	t.shared = t.shared && shared
	m[k] = t
	return m
}

// refuse drops a reply.
func (p *pass) refuse(c *call, refused []Refusal) {
	c.refused = refused
	c.err = fmt.Errorf("%w: %s: %s", ErrRefused, refused[0].What, refused[0].Reason)
	if n := len(refused) - 1; n > 0 {
		c.err = fmt.Errorf("%w (and %d more)", c.err, n)
	}
	p.fail(c)
}

// fail does what the failure policy of the hook says.
func (p *pass) fail(c *call) {
	name := c.hook.plugin.name
	switch {
	case c.hook.OnFailure != abi.FailRun:
	case p.frame.Phase == abi.ToolGate && c.hook.kind == phaseHook:
		reason := fmt.Sprintf("plugin %s failed: %v", name, c.err)
		c.gate = &abi.GateDecision{Action: abi.GateBlock, Reason: oneLine(reason, p.r.cfg.Limits.TextBytes)}
	default:
		p.fatal = append(p.fatal, &HookError{Plugin: name, Phase: p.frame.Phase, Handler: c.hook.name, Tool: c.hook.kind == toolHandler, Err: c.err})
	}
}
