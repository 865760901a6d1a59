package phases

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// wish is an effect of which not every one counts, and what the record says of it.
type wish struct {
	effect *abi.Effect
	change *Change
	by     string
}

// choose takes the first stop, the first veto and the first compaction request with a
// focus, and marks in the record those that do not count.
func (p *pass) choose(out *Outcome) {
	var stops, requests, overrides, vetoes []wish
	var focuses []string
	for _, c := range p.final {
		if c.proposal == nil {
			continue
		}
		stops = append(stops, c.wishes(abi.EffectStop)...)
		requests = append(requests, c.wishes(abi.EffectRequestCompaction)...)
		overrides = append(overrides, c.wishes(abi.EffectOverrideInference)...)
		vetoes = append(vetoes, c.wishes(abi.EffectVetoCompaction)...)
		for _, w := range c.wishes(abi.EffectFocusCompaction) {
			focuses = append(focuses, w.effect.Focus)
		}
	}
	if w := pick(vetoes, 0); w != nil {
		out.Veto = &Veto{Detail: w.effect.Detail, By: w.by}
	}
	out.Focus = strings.Join(focuses, focusSeparator)
	if w := pick(stops, 0); w != nil {
		out.Stop = &Stop{Code: w.effect.Code, Detail: w.effect.Detail, By: w.by}
	}
	for _, t := range []abi.EffectType{abi.EffectRewriteCall, abi.EffectReplaceResponse, abi.EffectReplaceResult} {
		p.last(t)
	}
	best := 0
	for i, w := range requests {
		if w.effect.Focus != "" {
			best = i
			break
		}
	}
	if w := pick(requests, best); w != nil {
		out.Compact = &CompactionRequest{Focus: w.effect.Focus, By: w.by}
	}
	for i := range overrides {
		for _, later := range overrides[i+1:] {
			if overlap(overrides[i].effect.Override, later.effect.Override) {
				overrides[i].change.Overridden = true
			}
		}
	}
}

// last marks all effects of a type but the one that was applied last.
func (p *pass) last(t abi.EffectType) {
	var all []wish
	chosen, order := 0, 0
	for _, c := range p.final {
		if c.proposal == nil {
			continue
		}
		found := c.wishes(t)
		if len(found) > 0 && c.order > order {
			chosen, order = len(all), c.order
		}
		all = append(all, found...)
	}
	pick(all, chosen)
}

// wishes are the applied effects of a type. Each of the types asked for makes
// exactly one change.
func (c *call) wishes(t abi.EffectType) []wish {
	var out []wish
	from := 0
	for i := range c.proposal.effects {
		e := &c.proposal.effects[i]
		if e.Type != t {
			continue
		}
		for from < len(c.applied) && c.applied[from].What != string(t) {
			from++
		}
		out = append(out, wish{effect: e, change: &c.applied[from], by: c.hook.plugin.name})
		from++
	}
	return out
}

// pick returns one of several wishes and marks the others.
func pick(all []wish, chosen int) *wish {
	if len(all) == 0 {
		return nil
	}
	for i := range all {
		all[i].change.Overridden = i != chosen
	}
	return &all[chosen]
}

// overlap reports whether both set a field.
func overlap(a, b *abi.InferenceOverride) bool {
	return a.Model != nil && b.Model != nil || a.FallbackModels != nil && b.FallbackModels != nil ||
		a.Temperature != nil && b.Temperature != nil || a.TopP != nil && b.TopP != nil ||
		a.MaxTokens != nil && b.MaxTokens != nil || a.ReasoningEffort != nil && b.ReasoningEffort != nil
}
