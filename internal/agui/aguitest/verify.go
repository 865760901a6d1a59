package aguitest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// open is what a run has open: by kind, and by id.
type open map[string]map[string]bool

// brackets are the events that open and close something, and the field with its id.
func brackets(kind string) (what, field, edge string) {
	for prefix, field := range map[string]string{
		"TEXT_MESSAGE_": "messageId", "REASONING_MESSAGE_": "messageId", "REASONING_": "messageId", "TOOL_CALL_": "toolCallId", "STEP_": "stepName",
	} {
		rest, ok := strings.CutPrefix(kind, prefix)
		if ok && slices.Contains([]string{"START", "STARTED", "CONTENT", "ARGS", "END", "FINISHED"}, rest) {
			return prefix, field, rest
		}
	}
	return "", "", ""
}

// Verify checks the order of a client's events by the rules of the protocol's own client: a run is started before anything
// else, what is opened is closed before the run finishes, and nothing comes between two runs. A stream need not be at its end.
func Verify(list []map[string]any) error {
	live, now := false, open{}
	for i, e := range list {
		kind, _ := e["type"].(string)
		if err := now.step(kind, e, live); err != nil {
			return fmt.Errorf("event %d, %s: %w", i, kind, err)
		}
		switch kind {
		case "RUN_STARTED":
			live, now = true, open{}
		case "RUN_FINISHED", "RUN_ERROR":
			live = false
		}
	}
	return nil
}

func (o open) step(kind string, e map[string]any, live bool) error {
	switch {
	case kind == "RUN_STARTED" && live:
		return fmt.Errorf("a run is under way")
	case kind != "RUN_STARTED" && !live:
		return fmt.Errorf("no run is under way")
	case kind == "RUN_FINISHED":
		return o.closed()
	}
	what, field, edge := brackets(kind)
	if what == "" {
		return nil
	}
	id, ok := e[field].(string)
	if !ok || id == "" {
		return fmt.Errorf("it has no %s", field)
	}
	if o[what] == nil {
		o[what] = map[string]bool{}
	}
	if starts := strings.HasPrefix(edge, "START"); starts == o[what][id] {
		return fmt.Errorf("%s is open: %v", id, o[what][id])
	}
	o[what][id] = edge != "END" && edge != "FINISHED"
	return nil
}

// closed fails when something is open.
func (o open) closed() error {
	for what, ids := range o {
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			if ids[id] {
				return fmt.Errorf("%s%s is open", what, id)
			}
		}
	}
	return nil
}
