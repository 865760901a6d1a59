package natsstore_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]natsstore.Config{
		"Config.URL":      {},
		"Config.Name":     {URL: "nats://127.0.0.1:1", Name: "a.b"},
		"Config.Replicas": {URL: "nats://127.0.0.1:1", Replicas: 2},
		"Config.Wait":     {URL: "nats://127.0.0.1:1", Wait: -1},
	} {
		if _, err := natsstore.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestErrorsHaveNoCredentials(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"nats://someone:s3cret%21@127.0.0.1:1", "nats://127.0.0.1:1,nats://s3cret!@127.0.0.1:1", "nats://someone:s3cret!@127.0.0.1:bad port", "://someone:s3cret!@x",
	} {
		var log bytes.Buffer
		_, err := natsstore.Open(t.Context(), natsstore.Config{URL: url, Logger: slog.New(slog.NewTextHandler(&log, nil)), Wait: time.Second})
		if err == nil {
			t.Fatalf("opened %s", url)
		}
		for _, text := range []string{err.Error(), log.String()} {
			if strings.Contains(text, "s3cret") {
				t.Errorf("the secret of %q is in %q", url, text)
			}
		}
	}
}

func TestForeignStreamIsRefused(t *testing.T) {
	t.Parallel()
	nc, err := nats.Connect(servertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	good := func(name string) jetstream.StreamConfig {
		return jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, AllowMsgTTL: true}
	}
	if _, err := js.CreateStream(t.Context(), good("foreign-good")); err != nil {
		t.Fatal(err)
	}
	open(t, named("foreign-good"))
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"memory":  func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"history": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 },
		"age":     func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"ttl":     func(c *jetstream.StreamConfig) { c.AllowMsgTTL = false },
		"direct":  func(c *jetstream.StreamConfig) { c.AllowDirect = true },
	} {
		c := good("foreign-" + name)
		change(&c)
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		s, err := natsstore.Open(t.Context(), natsstore.Config{URL: servertest.URL(t), Name: c.Name})
		if err == nil {
			_ = s.Close(context.WithoutCancel(t.Context()))
			t.Errorf("%s: opened", name)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	report := func(text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
		t.Cleanup(s.Close)
		return s.URL
	}
	good, bad := report(`{"config":{"sync_always":true}}`), report(`{"config":{"sync_interval":120}}`)
	for _, c := range []struct {
		monitor     []string
		want, never string
	}{
		{nil, "natsstore_sync_unknown", "natsstore_not_synced"},
		{[]string{good}, "natsstore_not_replicated", "sync"},
		{[]string{good, strings.Replace(bad, "http://", "http://me:s3cret@", 1)}, "natsstore_not_synced", "s3cret"},
		{[]string{"http://me:s3cret@127.0.0.1:1"}, "natsstore_sync_unknown", "s3cret"},
	} {
		var log bytes.Buffer
		open(t, func(cfg *natsstore.Config) {
			cfg.Monitor, cfg.Logger = c.monitor, slog.New(slog.NewTextHandler(&log, nil))
		})
		if text := log.String(); !strings.Contains(text, c.want) || strings.Contains(text, c.never) {
			t.Errorf("with %q: want %q, not %q, in\n%s", c.monitor, c.want, c.never, text)
		}
	}
}
