package phases

import (
	"context"

	"github.com/mortise-dev/mortise/abi"
)

// conversationKey finds the frame's messages in the context of a hook.
type conversationKey struct{}

// Conversation returns all messages that the model sees at the phase whose hook
// was called with ctx, whatever the hook's view. It is how a plugin reads more
// than it asked for. Nothing may change them. Outside of a hook it is nil.
func Conversation(ctx context.Context) []abi.Message {
	messages, _ := ctx.Value(conversationKey{}).([]abi.Message)
	return messages
}
