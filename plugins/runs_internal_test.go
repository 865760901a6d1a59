package plugins

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/guest"
)

// A call whose goroutine ends in the middle of it, as code of the embedder may have it, leaves no session behind.
func TestRuns_goexit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h, err := host.New(host.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.Load(ctx, host.Spec{Path: filepath.Join("testdata", "sticky.wasm"), Grants: host.Grants{Sticky: true}, Limits: host.Limits{Sessions: 1}})
	if err != nil {
		t.Fatal(err)
	}
	r := &runs{module: m}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.call(ctx, &guest.Edition{Generation: m.Current(), Sticky: true}, &abi.RunIdentity{RunID: "r"}, func(guest.Calls) error {
			runtime.Goexit()
			return nil
		})
	}()
	<-ended
	if s, err := m.Session(ctx); err != nil {
		t.Errorf("there is no room for another one: %v", err)
	} else if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	r.close()
	if err := h.Close(ctx); err != nil {
		t.Error(err)
	}
}
