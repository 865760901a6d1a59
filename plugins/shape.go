package plugins

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// ErrShape means that a guest cannot replace the one in use, because the
// phase runtime was built on another name, other hooks, state keys or tools.
var ErrShape = errors.New("cannot take over while it is in use")

// differences says in what a description differs from the one that is in use, as far
// as the phase runtime depends on it. It may own fewer state keys, not more.
func differences(was, is *abi.Description) string {
	var out []string
	out = append(out, changed("hook at", lines(was.Hooks, hookLine), lines(is.Hooks, hookLine), true)...)
	out = append(out, changed("action", lines(was.Actions, handlerLine), lines(is.Actions, handlerLine), true)...)
	out = append(out, changed("effect", lines(was.Effects, handlerLine), lines(is.Effects, handlerLine), true)...)
	out = append(out, changed("state key", lines(was.State, stateLine), lines(is.State, stateLine), false)...)
	out = append(out, changedTools(was.Tools, is.Tools)...)
	return strings.Join(out, "; ")
}

// line is one thing of a description in words.
type line struct{ name, text string }

func lines[T any](in []T, word func(*T) line) []line {
	out := make([]line, len(in))
	for i := range in {
		out[i] = word(&in[i])
	}
	return out
}

func hookLine(h *abi.Hook) line {
	text := fmt.Sprintf("mode %.20s, messages %.20s, window %d, include %.40q, priority %d, before %.200q, after %.200q, on_failure %.20s",
		h.Mode, cmp.Or(h.Messages, abi.ViewNone), h.Window, h.Include, h.Priority, h.Before, h.After, cmp.Or(string(h.OnFailure), "default"))
	return line{string(h.Phase), text}
}

func handlerLine(h *abi.Handler) line {
	return line{h.Name, fmt.Sprintf("mode %.20s, public %t, on_failure %.20s", cmp.Or(string(h.Mode), "default"), h.Public, cmp.Or(string(h.OnFailure), "default"))}
}

func stateLine(s *abi.StateKey) line {
	return line{s.Name, fmt.Sprintf("scope %.20s, merge %.20s", cmp.Or(s.Scope, abi.ScopeRun), cmp.Or(s.Merge, abi.MergeExclusive))}
}

// changed lists what was added, changed, and, where that matters, left out.
func changed(what string, was, is []line, missing bool) []string {
	var out []string
	find := func(all []line, name string) int {
		return slices.IndexFunc(all, func(l line) bool { return l.name == name })
	}
	for _, n := range is {
		switch i := find(was, n.name); {
		case i < 0:
			out = append(out, fmt.Sprintf("%s %.80q is new", what, n.name))
		case was[i] != n:
			out = append(out, fmt.Sprintf("%s %.80q is (%s) and was (%s)", what, n.name, n.text, was[i].text))
		}
	}
	for _, o := range was {
		if missing && find(is, o.name) < 0 {
			out = append(out, fmt.Sprintf("%s %.80q is gone", what, o.name))
		}
	}
	return out
}

// changedTools compares tools, which a model may have received already.
func changedTools(was, is []abi.Tool) []string {
	var out []string
	for i := range max(len(was), len(is)) {
		switch {
		case i >= len(is):
			out = append(out, fmt.Sprintf("tool %.80q is gone", was[i].Name))
		case i >= len(was):
			out = append(out, fmt.Sprintf("tool %.80q is new", is[i].Name))
		case !reflect.DeepEqual(was[i], is[i]):
			out = append(out, fmt.Sprintf("tool %d is %.80q and was %.80q, or has other parameters", i, is[i].Name, was[i].Name))
		}
	}
	return out
}
