package plugins

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
)

// ending is a context that ends the goroutine of the call that asks whether it is over.
type ending struct{ context.Context }

func (ending) Deadline() (time.Time, bool) {
	runtime.Goexit()
	return time.Time{}, false
}

func (ending) Done() <-chan struct{} {
	runtime.Goexit()
	return nil
}

func (ending) Err() error {
	runtime.Goexit()
	return nil
}

// A call whose goroutine ends in the middle of it, as code of the embedder can have it, leaves no session behind.
func TestPlugin_OnPhase_goexit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h, err := host.New(host.Config{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := Load(ctx, h, []Entry{{Module: host.Spec{
		Path: filepath.Join("testdata", "sticky.wasm"), Grants: host.Grants{Sticky: true}, Limits: host.Limits{Sessions: 1},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	p := set.plugins[0]
	event := &abi.Event{ABI: abi.Version, Phase: p.shape.Hooks[0].Phase, Run: abi.RunIdentity{ThreadID: "t", RunID: "r"}}
	if _, err := p.OnPhase(ctx, event); err != nil {
		t.Fatal(err)
	}
	ended, returned := make(chan struct{}), false
	go func() {
		defer close(ended)
		_, _ = p.OnPhase(ending{ctx}, event) //nolint:contextcheck // it is made of one
		returned = true
	}()
	<-ended
	if returned {
		t.Fatal("the call returned")
	}
	if s, err := p.module.Session(ctx); err != nil {
		t.Errorf("there is no room for another one: %v", err)
	} else if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if n := len(p.runs.byRun); n != 0 {
		t.Errorf("the plugin still has %d instances", n)
	}
	if err := set.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := h.Close(ctx); err != nil {
		t.Error(err)
	}
}
