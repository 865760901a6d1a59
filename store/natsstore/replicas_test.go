package natsstore_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// TestReplicas_cluster holds that a cluster is not used as one server unless that is asked for, and that a stream that is there says for
// itself.
func TestReplicas_cluster(t *testing.T) {
	t.Parallel()
	c := servertest.NewCluster(t)
	unsaid := func(name string) func(*natsstore.Config) {
		return func(cfg *natsstore.Config) { cfg.Name, cfg.Replicas = name, 0 }
	}
	open(t, c.Config, named("three"))
	if s := open(t, c.Config, unsaid("three")); s.Link().Replicas != 3 {
		t.Errorf("streams beside one with 3 copies get %d", s.Link().Replicas)
	}
	cfg := natsstore.Config{Logger: slog.New(slog.DiscardHandler)}
	c.Config(&cfg)
	unsaid("unsaid")(&cfg)
	s, err := natsstore.Open(t.Context(), cfg)
	if err == nil {
		_ = s.Close(context.WithoutCancel(t.Context()))
	}
	if err == nil || !strings.Contains(err.Error(), `the servers are a cluster, "test", and Config.Replicas is not set`) {
		t.Errorf("opened on one server of a cluster: %v", err)
	}
	open(t, c.Config, named("one"), func(cfg *natsstore.Config) { cfg.Replicas = 1 }) // it was asked for
}

// lines is what a logger wrote.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestWarnings_default holds that somebody hears of servers that may lose data, if the program says nothing of a logger.
func TestWarnings_default(t *testing.T) { //nolint:paralleltest // the logger is that of the process
	var out lines
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	open(t, named("warned"), func(cfg *natsstore.Config) { cfg.Logger = nil })
	for _, want := range []string{"natsstore_sync_unknown stream=warned", "natsstore_not_replicated stream=warned replicas=1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
