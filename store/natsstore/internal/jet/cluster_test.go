package jet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// Servers that are missing may come: who opens a stream asks for as long as there is patience, and says then what the servers said.
func TestOpen_withoutPeers(t *testing.T) {
	t.Parallel()
	cfg := natsstore.Config{Name: "missing"}
	servertest.NewCluster(t).Config(&cfg)
	cfg.Replicas = 5
	for cfg.Patience = 2 * time.Second; ; cfg.Patience *= 2 { // the three may be busy, too
		s, err := natsstore.Open(t.Context(), cfg)
		if err == nil {
			t.Fatal("five copies on three servers", s.Close(t.Context()))
		}
		if !errors.Is(err, jet.ErrPatience) || cfg.Patience > time.Minute {
			t.Fatalf("five copies on three servers: %v", err)
		}
		if strings.Contains(err.Error(), "no suitable peers") {
			return
		}
	}
}
