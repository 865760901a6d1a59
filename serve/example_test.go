package serve_test

import (
	"bufio"
	"context"
	"fmt"
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
	return &abi.Response{Message: abi.Message{Content: r.Messages[len(r.Messages)-1].Content}}, nil
}

// A server for an agent with a model of its own. A client submits a run, and reads its events.
func Example() {
	ctx, store := context.Background(), memstore.New()
	agents := map[string]mortise.Agent{"echo": {Model: echo{}}}
	runtime := expect(mortise.New(ctx, mortise.Config{Agents: agents, Store: store}))
	defer runtime.Close(ctx)
	server := expect(serve.New(serve.Config{Runtime: runtime}))
	defer server.Close()
	_ = expect(runtime, runtime.Start(ctx))
	listener := httptest.NewServer(server.Public()) // a program calls server.HTTP(server.Public()).ListenAndServe
	defer listener.Close()

	req := expect(http.NewRequestWithContext(ctx, http.MethodPost, listener.URL+"/v1/runs", strings.NewReader(`{"input":"hello"}`)))
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
	resp := expect(listener.Client().Do(req)) //nolint:bodyclose // the next line closes it
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok && name != "phase" {
			fmt.Println(name)
		}
	}
	// Output:
	// run_started
	// step_started
	// usage
	// step_ended
	// run_ended
	// settled
}

// expect is for examples: a program handles its errors.
func expect[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
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
	server, err := serve.New(serve.Config{Runtime: runtime})
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
	// hello
	// <nil>
}
