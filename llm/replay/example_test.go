package replay_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/replay"
	"github.com/mortise-dev/mortise/llm/transcript"
)

func ExampleNew() {
	file, err := transcript.Read(strings.NewReader(`
{"role": "system", "content": "You count files."}
{"role": "user", "content": "How many?"}
{"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "bash", "arguments": "{}"}}]}
{"role": "tool", "tool_call_id": "c1", "content": "12"}
{"role": "assistant", "content": "Twelve."}
`), transcript.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := replay.New(file.Conversations[0], replay.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	fmt.Println("system:", r.SystemPrompt())
	for turn, ok := r.Next(); ok; turn, ok = r.Next() {
		for _, m := range turn.Messages {
			fmt.Println("user:", m.Text())
		}
		for stop := abi.StopToolUse; stop == abi.StopToolUse; {
			response, err := r.Infer(ctx, llm.Request{})
			if err != nil {
				fmt.Println(err)
				return
			}
			stop = response.StopReason
			for _, call := range response.Message.ToolCalls {
				result, err := r.CallTool(ctx, call)
				if err != nil {
					fmt.Println(err)
					return
				}
				fmt.Println(call.Name+":", result.Content[0].Text)
			}
			if stop == abi.StopEndTurn {
				fmt.Println("model:", response.Message.Text())
			}
		}
	}
	// Output:
	// system: You count files.
	// user: How many?
	// bash: 12
	// model: Twelve.
}

// A recording whose beginning was played by another process is played from there.
func ExampleReplay_Seek() {
	file, err := transcript.Read(strings.NewReader(`
{"role": "user", "content": "How many?"}
{"role": "assistant", "content": "Twelve."}
{"role": "user", "content": "And now?"}
{"role": "assistant", "content": "Eleven."}
`), transcript.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := replay.New(file.Conversations[0], replay.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := r.Seek(2); err != nil {
		fmt.Println(err)
		return
	}
	turn, _ := r.Next()
	fmt.Println(turn.Messages[0].Text())
	// Output: And now?
}
