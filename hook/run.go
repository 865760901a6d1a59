package hook

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// maxStops is how often in a row plugins may have the agent continue instead of ending.
const maxStops = 8

// prompt starts a run.
func (h *handling) prompt(ctx context.Context) error {
	if h.event.Spec.PromptRepeats && !h.lane.saved.Ended && h.lane.saved.Step > 0 {
		return nil // the agent continues by itself
	}
	h.lane.newRun(cmp.Or(h.event.PromptID, h.engine.cfg.NewID()))
	h.lane.saved.Step = 1
	m := abi.Message{ID: "prompt_" + h.lane.run.RunID, Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(h.event.Prompt)}}
	h.logged(m)
	h.shown(h.event.Prompt)
	_, failed, err := h.phase(ctx, abi.RunStart, &phases.Frame{Messages: []abi.Message{m}})
	if failed != "" {
		h.deny(fmt.Sprintf("plugin %s failed", failed), failed)
	}
	if h.answer.Stop != nil && h.event.Spec.Has(FormDeny) {
		h.answer.Deny, h.answer.Stop = h.answer.Stop, nil
	}
	h.giveBack()
	return err
}

// batch ends a step.
func (h *handling) batch(ctx context.Context) error {
	_, failed, err := h.phase(ctx, abi.StepEnd, &phases.Frame{})
	if failed != "" {
		why := fmt.Sprintf("plugin %s failed", failed)
		h.answer.Stop = &why
	}
	h.lane.saved.Step++
	return err
}

// end ends a run. Messages that plugins append have the agent continue, a few times.
func (h *handling) end(ctx context.Context) error {
	ending := &abi.RunEnding{Termination: abi.TerminationNatural, Steps: h.lane.saved.Step}
	if h.event.Spec.Kind == EventFailure {
		ending.Termination, ending.Error = abi.TerminationFailed, h.event.Error
	}
	f := phases.Frame{End: ending}
	if h.event.Last != "" {
		f.Messages = []abi.Message{{ID: "last_" + h.lane.run.RunID, Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text(h.event.Last)}}}
	}
	out, failed, err := h.phase(ctx, abi.RunEnd, &f)
	if err != nil || failed != "" {
		return err
	}
	h.lane.saved.Ended, h.lane.dirty = true, true
	var texts []string
	for i := range out.Appended {
		texts = append(texts, out.Appended[i].Text())
	}
	if len(texts) == 0 {
		h.lane.saved.Stops = 0
		return nil
	}
	if h.lane.saved.Stops >= maxStops {
		h.unsupported("continue")
		h.record.Error = fmt.Sprintf("plugins had the agent continue %d times in a row; it ends now", maxStops)
		return nil
	}
	h.lane.saved.Stops++
	why := strings.Join(texts, "\n")
	h.answer.Continue = &why
	return nil
}

// compact fires before a compaction of the agent's own.
func (h *handling) compact(ctx context.Context) error {
	c := &abi.Compaction{ID: h.engine.cfg.NewID(), Policy: h.event.Dialect.Name}
	h.lane.saved.Repair.begin(c.ID)
	h.lane.dirty = true
	if h.event.Dialect.Compaction != postThenSession { // there nothing is asked of the summarizer
		h.remember()
	}
	out, _, err := h.phase(ctx, abi.BeforeCompaction, &phases.Frame{Compaction: c})
	if err != nil {
		return err
	}
	if out.Veto != nil {
		if h.event.Trigger == "manual" || h.event.Spec.VetoAutomatic {
			why := out.Veto.Detail
			h.answer.Veto = &why
			return nil
		}
		h.unsupported("veto_compaction")
	}
	h.answer.Focus = out.Focus
	if h.event.Spec.Has(FormFocus) {
		h.answer.Focus = strings.TrimSpace(out.Focus + "\n" + h.focus())
	}
	return nil
}

// maxLost is how many lost names plugins receive.
const maxLost = 32

// compacted fires after a compaction of the agent's own.
func (h *handling) compacted(ctx context.Context) error {
	if h.event.Dialect.Compaction == postThenSession {
		h.remember()
	}
	summary := cmp.Or(h.event.Summary, h.lane.saved.Repair.Summary)
	c := &abi.Compaction{
		ID: h.lane.saved.Repair.ID, Policy: h.event.Dialect.Name, Outcome: abi.CompactionSwapped, Summary: summary,
	}
	if summary != "" {
		lost := h.lane.saved.Repair.lost(summary)
		c.Lost = lost[:min(len(lost), maxLost)]
	}
	h.record.Compacted = true
	_, _, err := h.phase(ctx, abi.AfterCompaction, &phases.Frame{Compaction: c})
	h.afterSummary(summary)
	return err
}

// session starts or resumes a session; after a compaction it is where the lost facts can be given back.
func (h *handling) session() error {
	switch h.event.Source {
	case "clear":
		h.lane.saved.Repair, h.lane.log = Repair{}, nil
	case "compact":
		h.atSessionStart()
	}
	h.lane.dirty = true
	return nil
}
