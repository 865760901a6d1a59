package hookcmd

import (
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
)

// warnLevel is the level of logs of commands that print.
const warnLevel = 4

// gap is something that a plugin asks for and that an agent's hooks cannot do.
type gap struct {
	text string
	// closed means that the plugin fails closed there, so that its user relies on it.
	closed bool
}

// known leaves out events that the installed version of an agent does not have: older ones ignore a whole file for one of them.
func (h *hookParts) known(d *hook.Dialect, version string, events []string) (left []string, gaps []gap) {
	if hook.Before(version, d.Oldest) {
		text := fmt.Sprintf("%s %s is older than %s, before which its hooks do not replace every result; update it", d.Agent, version, d.Oldest)
		gaps = append(gaps, gap{text, len(h.program.Runtime.Order(abi.AfterToolExecute)) > 0})
	}
	for _, name := range events {
		spec := d.Events[name]
		if !hook.Before(version, spec.Since) {
			left = append(left, name)
			continue
		}
		gaps = append(gaps, gap{fmt.Sprintf("%s %s has no event %s, which is left out (it is there since %s)", d.Agent, version, name, spec.Since), h.program.Closed(spec)})
	}
	return left, gaps
}

// gaps lists what the agent's hooks cannot do for the plugins.
func (h *hookParts) gaps(d *hook.Dialect) []gap {
	var out []gap
	fired := map[abi.Phase][]*hook.EventSpec{}
	for _, e := range d.Events {
		for _, p := range e.Phases {
			fired[p] = append(fired[p], e)
		}
	}
	for i := range h.program.Plugins {
		plugin := &h.program.Plugins[i]
		for _, k := range plugin.Hooks {
			closed := k.OnFailure == abi.FailRun || k.OnFailure == "" && k.Mode == abi.ModeGate
			events := fired[k.Phase]
			switch {
			case len(events) == 0:
				out = append(out, gap{fmt.Sprintf("%s: plugin %s has a hook at %s, which its hooks never fire", d.Agent, plugin.Name, k.Phase), closed})
			case k.Mode == abi.ModeObserve:
			default:
				for _, g := range h.formless(events, k.Phase) {
					out = append(out, gap{fmt.Sprintf("%s: plugin %s at %s: %s", d.Agent, plugin.Name, k.Phase, g), closed && g == noReplacement})
				}
			}
		}
	}
	if plugin := h.program.Blind(); plugin != "" && len(fired[abi.AfterToolExecute]) > 0 {
		out = append(out, gap{text: fmt.Sprintf("%s: plugin %s reads texts alone: images, PDFs and other binary content of results reach the model unseen", d.Agent, plugin)})
	}
	return out
}

const noReplacement = "results cannot be replaced (unsupported: replace_result)"

// formless are the decisions at a phase that have no form.
func (h *hookParts) formless(events []*hook.EventSpec, at abi.Phase) []string {
	var out []string
	some := func(kind hook.EventKind, f hook.Form) bool {
		return slices.ContainsFunc(events, func(e *hook.EventSpec) bool { return e.Kind == kind && e.Has(f) })
	}
	has := func(kind hook.EventKind) bool {
		return slices.ContainsFunc(events, func(e *hook.EventSpec) bool { return e.Kind == kind })
	}
	switch at {
	case abi.ToolGate, abi.BeforeToolExecute:
		if !some(hook.EventPre, hook.FormRewrite) {
			out = append(out, "calls cannot be rewritten (unsupported: rewrite_call)")
		}
	case abi.AfterToolExecute:
		if !some(hook.EventPost, hook.FormReplace) {
			out = append(out, noReplacement)
		}
		if has(hook.EventFailed) && !some(hook.EventFailed, hook.FormReplace) && !h.program.WrapShell {
			out = append(out, "results of failed calls cannot be replaced (unsupported: replace_result); hook.wrap_shell helps for shell commands, mortise proxy for all")
		}
	case abi.RunStart:
		if !some(hook.EventPrompt, hook.FormDeny) {
			out = append(out, "prompts cannot be blocked (unsupported: block)")
		}
	case abi.BeforeCompaction:
		if !some(hook.EventCompact, hook.FormVeto) {
			out = append(out, "a compaction cannot be kept from starting (unsupported: veto_compaction)")
		}
		if !some(hook.EventCompact, hook.FormFocus) {
			out = append(out, "the summarizer takes no focus (unsupported: focus_compaction)")
		}
	default: // nothing else is wanted there
	}
	return out
}
