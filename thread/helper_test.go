package thread_test

import (
	"context"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

func example() context.Context { return context.Background() }

func openFile(ctx context.Context, name string) (store.Store, func() error, error) {
	s, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: name})
	if err != nil {
		return nil, nil, err
	}
	return s, func() error { return s.Close(context.WithoutCancel(ctx)) }, nil
}
