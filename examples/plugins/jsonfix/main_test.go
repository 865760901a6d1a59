package main

import (
	"reflect"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

func TestOnPhase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arguments any
		config    any
		want      any
	}{
		"valid":         {map[string]any{"path": "a"}, nil, nil},
		"absent":        {nil, nil, nil},
		"repairable":    {`{"path": "a",}`, nil, map[string]any{"path": "a"}},
		"cut":           {`{"path": "a`, nil, nil},
		"cut, accepted": {`{"path": "a`, map[string]any{"cut_off": true}, map[string]any{"path": "a"}},
		"no JSON":       {"cat a", nil, nil},
	} {
		r, err := onPhase(&mortise.Event{Phase: mortise.ToolGate, Call: &mortise.ToolCall{ID: "c", Arguments: c.arguments}, Config: c.config})
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if r != nil {
			got = r.Effects[0].Arguments
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
