package pgstore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun/agentruntest"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// openSchema opens a schema of a server, "schema URL".
func openSchema(ctx context.Context, name string) (mailbox.Store, func(context.Context) error, error) {
	schema, url, _ := strings.Cut(name, " ")
	s, err := pgstore.Open(ctx, pgstore.Config{URL: url, Schema: schema, Conns: 4})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

func TestRun_killed(t *testing.T) {
	t.Parallel()
	agentruntest.TestKilled(t, openSchema, func(t *testing.T) string {
		t.Helper()
		c := config(t)
		return c.Schema + " " + c.URL
	})
}
