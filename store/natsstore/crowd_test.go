package natsstore_test

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

func at(url string) func(*natsstore.Config) { return func(c *natsstore.Config) { c.URL = url } }

// unsynced is the URL of a server that does not wait for the disk, so that a large backlog is there soon.
func unsynced(b *testing.B) string {
	b.Helper()
	server, err := servertest.Start(servertest.Options(b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { server.Shutdown(); server.WaitForShutdown() })
	return server.ClientURL()
}

// births are the numbers of the records of a dispatch and its run in the head of a thread.
var births = regexp.MustCompile(`"b":\d+,"n":\d+`)

// crowd makes n threads with a dispatch each: the records of one that is queued, written again and again under other names, many at
// once.
func crowd(b *testing.B, url, name string, n int) {
	b.Helper()
	const template = "template"
	if _, err := newQueue(b, open(b, named(name), at(url)), time.Now).Enqueue(b.Context(), newEntry(template, template)); err != nil {
		b.Fatal(err)
	}
	nc, err := nats.Connect(url)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(2000))
	if err != nil {
		b.Fatal(err)
	}
	s, err := js.Stream(b.Context(), name)
	if err != nil {
		b.Fatal(err)
	}
	var records [3]string
	kinds := []string{"r", "d", "h"}
	for i, kind := range kinds {
		msg, err := s.GetLastMsgForSubject(b.Context(), name+"."+kind+".*")
		if err != nil {
			b.Fatal(err)
		}
		records[i] = string(msg.Data)
	}
	made, err := s.Info(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for t := range n - 1 {
		id, first := fmt.Sprint("thread-", t), made.State.LastSeq+uint64(3*t)+1 //nolint:gosec // small
		for i, kind := range kinds {
			of := id
			if kind == "r" {
				of = "run-" + id
			}
			data := strings.ReplaceAll(records[i], template, id)
			data = births.ReplaceAllString(data, fmt.Sprintf(`"b":%d,"n":%d`, first+1, first))
			if _, err := js.PublishAsync(name+"."+kind+"."+base64.RawURLEncoding.EncodeToString([]byte(of)), []byte(data), jetstream.WithStallWait(time.Minute)); err != nil {
				b.Fatal(err)
			}
		}
	}
	<-js.PublishAsyncComplete()
	if info, err := s.Info(b.Context()); err != nil || info.State.Msgs != made.State.Msgs+uint64(3*(n-1)) { //nolint:gosec // small
		b.Fatalf("%d records, not %d more than %d: %v", info.State.Msgs, 3*(n-1), made.State.Msgs, err)
	}
}

// BenchmarkThreads looks for what is due, claims and gives back, with 10 and with many threads that have something queued, in
// blocks that take turns. The ten that are first at the start are claimed in turn.
func BenchmarkThreads(b *testing.B) {
	many, url := backlog(b), unsynced(b)
	stores, queues := map[int]mailbox.Store{}, map[int]*mailbox.Queue{}
	for _, n := range []int{10, many} {
		name, start := servertest.NewName(), time.Now()
		crowd(b, url, name, n)
		made, before := time.Now(), heap()
		stores[n] = open(b, named(name), at(url))
		opened := time.Now()
		queues[n] = newQueue(b, stores[n], time.Now)
		b.Logf("%d threads were made in %v and read in %v, with %d bytes of memory each", n, made.Sub(start), opened.Sub(made), (heap()-before)/n)
		if c, err := stores[n].Count(b.Context()); err != nil || c.Status[mailbox.Queued] != n {
			b.Fatalf("%d are queued, not %d: %v", c.Status[mailbox.Queued], n, err)
		}
	}
	tokens, threads := 0, map[int][]mailbox.Head{}
	work := func(n int) func() {
		return func() {
			for range block {
				heads, _, err := stores[n].Due(b.Context(), mailbox.DueQuery{By: time.Now(), Limit: 10})
				if err != nil || len(heads) != 10 {
					b.Fatal(len(heads), err)
				}
				if threads[n] == nil {
					threads[n] = heads
				}
				tokens++
				k, ok, err := queues[n].Claim(b.Context(), threads[n][tokens%10].Thread, claim(fmt.Sprint("token", tokens)))
				if err != nil || !ok {
					b.Fatal(ok, err)
				}
				if _, err := queues[n].Settle(b.Context(), hold(k), mailbox.Settlement{Verdict: mailbox.GiveBack}); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	costs := map[int][]cost{}
	for b.Loop() {
		for _, n := range []int{10, many} {
			costs[n] = append(costs[n], measure(work(n)))
		}
	}
	b.ReportMetric(float64(many), "threads")
	b.ReportMetric(median(costs[10], wall)/1e6, "ms/few")
	b.ReportMetric(median(costs[many], wall)/1e6, "ms/many")
	b.ReportMetric(median(costs[many], wall)/median(costs[10], wall), "wall-ratio")
	b.ReportMetric(median(costs[many], cpu)/median(costs[10], cpu), "cpu-ratio")
	b.ReportMetric(0, "ns/op")
}
