package serve_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/serve"
)

// small is a listener whose connections buffer little.
type small struct{ net.Listener }

func (l small) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(64 << 10)
	}
	return c, err
}

// TestSlowReader: a reader that kept up and then falls more than 1 MiB behind is cut, and gets the rest when it
// connects again; one that begins far behind is not cut.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{
		runtime: func(c *mortise.Config) { c.Mailbox.Events.Count, c.Mailbox.Events.Bytes = 10_000, 64<<20 },
		serve:   func(c *serve.Config) { c.Limits.Heartbeat = 10 * time.Millisecond },
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := w.server.HTTP(w.server.Admin())
	go func() { _ = server.Serve(small{listener}) }()
	t.Cleanup(func() { _ = server.Close() })
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, listener.Addr().String())
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(64 << 10)
		}
		return c, err
	}}}
	t.Cleanup(client.CloseIdleConnections)
	run := w.submit("/v1/threads/t/runs", say("flood")).Run
	slow := w.via(client, "http://"+listener.Addr().String(), run)
	<-w.mind.begun
	list := slow.until("text_delta")
	slow.comments(2) // the server waits for events before it writes the second one: the reader has kept up
	close(w.mind.release)
	whole := w.all(run, "")
	list = append(list, slow.rest()...)
	if last := list[len(list)-1]; last.name == "settled" {
		t.Fatalf("it was not cut, after %d events", len(list))
	}
	list = append(list, w.all(run, list[len(list)-1].id)...)
	if !slices.Equal(list, whole) {
		t.Errorf("it has %d events of %d", len(list), len(whole))
	}
}

// all reads the events of a run, and connects again whenever it is cut.
func (w *world) all(run, after string) (list []event) {
	w.t.Helper()
	for {
		list = append(list, w.follow(run, after).rest()...)
		if len(list) > 0 {
			after = list[len(list)-1].id
		}
		if strings.HasSuffix(after, "-end") {
			return list
		}
	}
}

// via opens a stream with another client.
func (w *world) via(client *http.Client, url, run string) *stream {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, url+"/v1/runs/"+run+"/events", http.NoBody)
	must(w.t, err)
	resp, err := client.Do(req)
	must(w.t, err)
	return w.read(resp)
}

// TestManyStreams: 200 streams of one run all get all of it, one more than the limit is refused,
// and a place is free when a stream has ended.
func TestManyStreams(t *testing.T) {
	t.Parallel()
	const most = 200
	w := newWorld(t, options{serve: func(c *serve.Config) { c.Limits.Streams = most }})
	run := w.submit("/v1/threads/t/runs", say("hold")).Run
	<-w.mind.begun
	streams := make([]*stream, most)
	for i := range streams {
		streams[i] = w.follow(run, "")
	}
	if a := w.want(http.StatusTooManyRequests, http.MethodGet, "/v1/runs/"+run+"/events", ""); a.Header.Get("Retry-After") == "" {
		t.Errorf("the header is %v", a.Header)
	}
	w.refused(http.StatusTooManyRequests, http.MethodPost, "/v1/runs", say("say hi"), "Accept", eventStream)
	var wg sync.WaitGroup
	lists := make([][]event, most)
	for i, s := range streams {
		wg.Go(func() { lists[i] = s.rest() })
	}
	close(w.mind.release)
	wg.Wait()
	for i, list := range lists {
		if !slices.Equal(list, lists[0]) || list[len(list)-1].name != "settled" {
			t.Fatalf("stream %d has %s, the first one %s", i, told(list), told(lists[0]))
		}
	}
	if list := w.follow(run, "").rest(); !slices.Equal(list, lists[0]) {
		t.Errorf("afterwards the stream is %s", told(list))
	}
}

// TestHeartbeat: a stream without events has comments.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{serve: func(c *serve.Config) { c.Limits.Heartbeat = time.Millisecond }})
	for _, text := range []string{"hold", "ask"} { // one is under way, one waits for a decision
		run := w.submit("/v1/threads/"+text+"/runs", say(text)).Run
		s := w.follow(run, "")
		s.until(map[string]string{"hold": "step_started", "ask": "run_waiting"}[text])
		s.comments(3)
		s.close()
		w.want(http.StatusOK, http.MethodPost, "/v1/runs/"+run+"/cancel", "")
		w.follow(run, "").until("settled")
	}
}

// TestLongStream: a stream outlives the time in which its request has to arrive.
func TestLongStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{serve: func(c *serve.Config) { c.Limits.Heartbeat, c.Limits.Read = 100*time.Millisecond, 3*time.Second }})
	s := w.stream(http.MethodPost, "/v1/runs", say("hold"))
	<-w.mind.begun
	for n := 0; n < 40; {
		if !s.scan.Scan() {
			t.Fatalf("the stream ended: %v", s.scan.Err())
		}
		if s.scan.Text() == ":" {
			n++
		}
	}
	close(w.mind.release)
	s.until("settled")
}

// TestAhead: a client that is ahead of its run waits, and gets the end.
func TestAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{serve: func(c *serve.Config) { c.Limits.Heartbeat = time.Millisecond }})
	run := w.submit("/v1/runs", say("hold")).Run
	<-w.mind.begun
	s := w.follow(run, "99-end")
	for range 4 {
		s.scan.Scan() // comments
	}
	close(w.mind.release)
	if list := s.rest(); told(list) != "settled" {
		t.Errorf("the events are %s", told(list))
	}
}

// TestFollow: a client within the process gets the same events, and an error when they end early.
func TestFollow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	run := w.submit("/v1/threads/t/runs", say("say a b")).Run
	list := w.follow(run, "").rest()
	var got []string
	err := w.server.Follow(t.Context(), run, func(_ context.Context, e serve.Event) error {
		got = append(got, e.ID+" "+e.Type)
		return nil
	})
	if err != nil || len(got) != len(list) || got[len(got)-1] != list[len(list)-1].id+" settled" {
		t.Errorf("the events are %q (%v), want %s", got, err, told(list))
	}
	enough := errors.New("enough")
	if err := w.server.Follow(t.Context(), run, func(context.Context, serve.Event) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("it ended with %v", err)
	}
	if err := w.server.Follow(t.Context(), "none", nil); !errors.Is(err, mailbox.ErrNotFound) {
		t.Errorf("a run that is not there ended it with %v", err)
	}
	held := w.submit("/v1/threads/t/runs", say("hold")).Run
	err = w.server.Follow(t.Context(), held, func(_ context.Context, e serve.Event) error {
		if e.Type == "step_started" {
			go func() { _ = w.server.Close() }()
		}
		return nil
	})
	if !errors.Is(err, serve.ErrDraining) {
		t.Errorf("the shutdown ended it with %v", err)
	}
	if err := w.server.Follow(t.Context(), held, nil); !errors.Is(err, serve.ErrDraining) {
		t.Errorf("after the shutdown it is %v", err)
	}
	close(w.mind.release)
}

// TestFailure: a run that fails shows its failure in its events, and ends.
func TestFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	list := w.stream(http.MethodPost, "/v1/runs", say("fail")).rest()
	got := names(list)
	if !slices.Contains(got, "attempt_failed") || got[len(got)-1] != "settled" || fmt.Sprint(list[len(list)-1].field(t, "error")) == "" {
		t.Errorf("the events are %s", told(list))
	}
	if strings.Contains(told(list), "mailbox_") {
		t.Errorf("the events are %s", told(list))
	}
}

// TestEvent_fields: which fields each event has.
func TestEvent_fields(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{runtime: func(c *mortise.Config) { c.Mailbox.Retry.Attempts, c.Mailbox.Retry.Delay = 2, time.Millisecond }})
	missing := map[string]string{"attempt_failed": "at", "refused": "at", "skipped": "at", "gap": "at", "settled": "seq"}
	for text, last := range map[string]string{"say hi there": "settled", "fail": "settled", "stutter": "settled", "ask": "run_waiting"} {
		for _, e := range w.stream(http.MethodPost, "/v1/runs", say(text)).until(last) {
			for _, name := range []string{"type", "id", "seq", "at", "run_id", "thread_id", "dispatch_id"} {
				if has := e.field(t, name) != nil; has == (missing[e.name] == name) {
					t.Errorf("%s: %s, of which %s is there: %t", e.name, e.data, name, has)
				}
			}
		}
	}
}
