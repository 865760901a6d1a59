package sqlitestore_test

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/viewtest"
)

func TestViews(t *testing.T) {
	t.Parallel()
	viewtest.TestViews(t, pair)
}

func TestMailbox(t *testing.T) {
	t.Parallel()
	viewtest.TestMailbox(t, pair, testskip.Rounds(300, 24))
}

func openNamed(ctx context.Context, path string) (store.Store, func(context.Context) error, error) {
	s, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: path})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

func TestViews_killed(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	viewtest.TestKilled(t, openNamed, fresh, time.Duration(testskip.Rounds(45, 15))*time.Second)
}
