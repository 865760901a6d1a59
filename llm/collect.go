package llm

import "github.com/mortise-dev/mortise/abi"

// Collect runs a stream to its end and returns the answer that its deltas make. Arguments
// that are not JSON are the text that the model wrote. The error is that of the stream, or
// of an answer that is too large.
func Collect(stream func(emit func(Delta) bool) error) (*abi.Response, error) {
	var a assembly
	var tooLarge error
	err := stream(func(d Delta) bool {
		tooLarge = a.add(&d)
		return tooLarge == nil
	})
	if tooLarge != nil {
		return nil, tooLarge
	}
	if err != nil {
		return nil, err
	}
	out := &abi.Response{Model: a.model, StopReason: a.stop, Message: abi.Message{Role: abi.RoleAssistant, Content: a.Content}}
	for _, c := range a.Calls {
		arguments, err := decodeArguments(c.Arguments)
		if err != nil {
			arguments = c.Arguments
		}
		out.Message.ToolCalls = append(out.Message.ToolCalls, abi.ToolCall{ID: c.ID, Name: c.Name, Arguments: arguments})
	}
	if a.usage != (abi.Usage{}) {
		out.Usage = &a.usage
	}
	return out, nil
}
