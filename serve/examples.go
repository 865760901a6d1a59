package serve

import "github.com/danielgtaylor/huma/v2"

// bodies adds examples of the body to an operation. A test executes each of them.
func bodies(op huma.Operation, named map[string]any) huma.Operation {
	media := &huma.MediaType{Examples: map[string]*huma.Example{}}
	for name, body := range named {
		media.Examples[name] = &huma.Example{Value: body}
	}
	op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"application/json": media}}
	return op
}

type object = map[string]any

func runExamples() map[string]any {
	return map[string]any{
		"text": object{"agent": "assistant", "input": "What is in this folder?"},
		"messages": object{
			"input": []any{object{"role": "user", "content": []any{object{"type": "text", "text": "What is in this folder?"}}}},
			"mode":  modeForeground, "idempotency_key": "order-1042",
		},
	}
}

func decisionExamples() map[string]any {
	of := func(d object) object { d["target"] = "call_1"; return object{"decisions": []any{d}} }
	return map[string]any{
		"allow":  of(object{"action": actionAllow}),
		"deny":   of(object{"action": actionDeny, "reason": "Not on a Friday."}),
		"result": of(object{"action": actionResult, "result": "It was done by hand."}),
	}
}

func compactExamples() map[string]any {
	return map[string]any{"focus": object{"focus": "Keep the open questions."}}
}
