package pgstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/pgstore"
	"github.com/mortise-dev/mortise/store/viewtest"
)

func TestViews(t *testing.T) {
	t.Parallel()
	viewtest.TestViews(t, twice)
}

func TestMailbox(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	viewtest.TestMailbox(t, twice, testskip.Rounds(100, 24))
}

func openNamed(ctx context.Context, name string) (store.Store, func(context.Context) error, error) {
	schema, url, _ := strings.Cut(name, " ")
	s, err := pgstore.Open(ctx, pgstore.Config{URL: url, Schema: schema, Conns: 4})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

func TestViews_killed(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	viewtest.TestKilled(t, openNamed, func(t *testing.T) string {
		t.Helper()
		c := config(t)
		return c.Schema + " " + c.URL
	}, time.Duration(testskip.Rounds(45, 15))*time.Second)
}
