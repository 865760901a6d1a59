package serve_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/serve"
	"github.com/mortise-dev/mortise/store/memstore"
)

// echo is a model that repeats its input.
type echo struct{}

func (echo) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	text := "You said: " + r.Messages[len(r.Messages)-1].Text()
	return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text(text)}}}, nil
}

// A server for an agent with a model of its own. A client submits a run, and reads its events.
func Example() {
	ctx, store := context.Background(), memstore.New()
	runtime, err := mortise.New(ctx, mortise.Config{
		Agents: map[string]mortise.Agent{"echo": {Model: echo{}}}, Store: store,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runtime.Close(ctx)
	server, err := serve.New(serve.Config{Runtime: runtime, Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	if err := runtime.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	listener := httptest.NewServer(server.Public()) // a program calls server.HTTP(server.Public()).ListenAndServe
	defer listener.Close()

	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, listener.URL+"/v1/runs", strings.NewReader(`{"input":"hello"}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	resp, err := listener.Client().Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	events, _ := io.ReadAll(resp.Body)
	for line := range strings.Lines(string(events)) {
		if strings.HasPrefix(line, "event: ") && !strings.Contains(line, "phase") {
			fmt.Print(line)
		}
	}
	fmt.Println(strings.Contains(string(events), "You said: hello"))
	// Output:
	// event: run_started
	// event: step_started
	// event: usage
	// event: step_ended
	// event: run_ended
	// event: settled
	// true
}

// A program follows a run of its own runtime, without HTTP.
func ExampleServer_Follow() {
	ctx, store := context.Background(), memstore.New()
	runtime, err := mortise.New(ctx, mortise.Config{
		Agents: map[string]mortise.Agent{"echo": {Model: echo{}}}, Store: store,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runtime.Close(ctx)
	server, err := serve.New(serve.Config{Runtime: runtime, Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	if err := runtime.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	input, _ := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("hello")}})
	sub, err := runtime.Mailbox().Submit(ctx, mailbox.Request{Thread: "t1", Messages: input})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = server.Follow(ctx, sub.Run, func(_ context.Context, e serve.Event) error {
		var fields struct{ Output string }
		if err := e.Decode(&fields); err != nil {
			return err
		}
		if e.Type == "settled" {
			fmt.Println(fields.Output)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// You said: hello
	// <nil>
}
