package natsstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/natsstore"
)

// Two processes share threads. Here the server runs in this process; give the addresses of a cluster instead.
func Example() {
	if err := share(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: hello to all
}

func share(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return err
	}
	srv.Start()
	defer func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	}()
	if !srv.ReadyForConnections(20 * time.Second) {
		return errors.New("the server did not start")
	}
	cfg := natsstore.Config{URL: srv.ClientURL(), Stream: "agents", Logger: slog.New(slog.DiscardHandler)}
	one, err := natsstore.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, one.Close(ctx)) }()
	other, err := natsstore.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.Close(ctx)) }()
	return greet(ctx, one, other)
}

func greet(ctx context.Context, one, other store.Store) error {
	first, err := store.ApplySurely(ctx, one, store.Batch{Thread: "t", Put: []store.Cell{{Kind: "greeting", Value: []byte("hello")}}})
	if err != nil {
		return err
	}
	words := []store.Entry{{Log: "words", Data: []byte("to all")}}
	_, err = store.ApplySurely(ctx, other, store.Batch{Thread: "t", Base: first, Append: words})
	if err != nil {
		return err
	}
	q := store.Query{Cells: []store.Range{store.All("greeting")}, Entries: []store.Span{{Log: "words", Limit: 10}}}
	snap, err := one.Read(ctx, "t", q)
	if err != nil {
		return err
	}
	fmt.Println(string(snap.Cells[0].Value), string(snap.Entries[0].Data))
	return nil
}
