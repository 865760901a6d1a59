//go:build unix

// Package river compares jobs of the mailbox with those of River on one PostgreSQL server. It is a module of its own, so that nothing else
// depends on River:
//
//	cd mailbox/testdata/river && go test -run '^$' -bench Jobs -benchtime 1x
package river

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/mortise-dev/mortise/internal/pgtest"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// rounds is how often both do their jobs, in turns. The medians count.
const rounds = 6

// submitters is how many goroutines submit jobs at once.
const submitters = 8

// BenchmarkJobs submits jobs whose handlers do nothing, one call each, while workers execute them, and waits for the last one. Each job of
// the mailbox has a thread of its own. It reports milliseconds for a job and of CPU of client and server, and the ratios of the medians. River fetches jobs every 100 ms at
// most by default, and with cooldown=1ms as often as it can.
func BenchmarkJobs(b *testing.B) {
	server, err := pgtest.Loopback(b.Context(), nil, nil)
	pgtest.Need(b, err)
	b.Cleanup(func() { _ = server.Close() })
	cpu := meter(b, server.LoopbackURL(nil))
	for _, cooldown := range []time.Duration{river.FetchCooldownDefault, time.Millisecond} {
		for _, rtt := range []time.Duration{0, 10 * time.Millisecond} {
			for _, workers := range []int{1, 8, 64} {
				b.Run(fmt.Sprintf("cooldown=%v/rtt=%v/workers=%d", cooldown, rtt, workers), func(b *testing.B) {
					address := server.LoopbackURL(nil)
					jobs := map[int]int{1: 60, 8: 300, 64: 1200}[workers]
					if rtt > 0 {
						address, jobs = delayed(b, address, rtt/2), jobs/3
					}
					compare(b, jobs, cpu, newRiver(b, address, workers, cooldown), newMailbox(b, address, workers))
				})
			}
		}
	}
}

func compare(b *testing.B, jobs int, cpu func() time.Duration, theirs, ours func(*testing.B, int)) {
	b.Helper()
	for b.Loop() {
		var times, used [2][]float64
		for range rounds {
			for i, work := range []func(*testing.B, int){theirs, ours} {
				before, start := cpu(), time.Now()
				work(b, jobs)
				times[i] = append(times[i], float64(time.Since(start).Microseconds())/1000/float64(jobs))
				used[i] = append(used[i], float64((cpu()-before).Microseconds())/1000/float64(jobs))
			}
		}
		b.ReportMetric(median(times[0]), "river-ms/job")
		b.ReportMetric(median(times[1]), "mortise-ms/job")
		b.ReportMetric(median(times[1])/median(times[0]), "ratio")
		b.ReportMetric(median(used[0]), "river-cpu-ms/job")
		b.ReportMetric(median(used[1]), "mortise-cpu-ms/job")
		b.ReportMetric(median(used[1])/median(used[0]), "cpu-ratio")
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// submit calls f for each job, by several goroutines.
func submit(jobs int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range submitters {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < jobs; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// args are those of a River job: it does nothing.
type args struct {
	Text string `json:"text"`
}

func (args) Kind() string { return "nothing" }

type worker struct {
	river.WorkerDefaults[args]

	done *sync.WaitGroup
}

func (w *worker) Work(context.Context, *river.Job[args]) error {
	w.done.Done()
	return nil
}

func newRiver(b *testing.B, address string, workers int, cooldown time.Duration) func(*testing.B, int) {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), address)
	check(b, err)
	b.Cleanup(pool.Close)
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	check(b, err)
	_, err = migrator.Migrate(b.Context(), rivermigrate.DirectionUp, nil)
	check(b, err)
	var done sync.WaitGroup
	list := river.NewWorkers()
	river.AddWorker(list, &worker{done: &done})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}, Workers: list, Logger: slog.New(slog.DiscardHandler),
		FetchCooldown: cooldown,
	})
	check(b, err)
	check(b, client.Start(context.WithoutCancel(b.Context())))
	b.Cleanup(func() { _ = client.Stop(context.WithoutCancel(b.Context())) })
	return func(b *testing.B, jobs int) {
		b.Helper()
		done.Add(jobs)
		submit(jobs, func(int) {
			_, err := client.Insert(b.Context(), args{Text: "hello"}, nil)
			check(b, err)
		})
		done.Wait()
	}
}

// nothing is a runtime whose runs do nothing.
type nothing struct{ done sync.WaitGroup }

func (n *nothing) Run(context.Context, *mailbox.Job) (mailbox.Result, error) {
	n.done.Done()
	return mailbox.Result{Termination: "natural"}, nil
}

func newMailbox(b *testing.B, address string, workers int) func(*testing.B, int) {
	b.Helper()
	s, err := pgstore.Open(b.Context(), pgstore.Config{URL: address, Conns: 16})
	check(b, err)
	n := &nothing{}
	m, err := mailbox.New(b.Context(), mailbox.Config{Store: s, Runtime: n, Limits: mailbox.Limits{Workers: workers}})
	check(b, err)
	check(b, m.Start(b.Context()))
	b.Cleanup(func() {
		ctx := context.WithoutCancel(b.Context())
		_ = errors.Join(m.Close(ctx), s.Close(ctx))
	})
	var count atomic.Int64
	return func(b *testing.B, jobs int) {
		b.Helper()
		n.done.Add(jobs)
		submit(jobs, func(int) {
			_, err := m.SubmitBackground(b.Context(), mailbox.Request{
				Thread: fmt.Sprint("t", count.Add(1)), Messages: []mailbox.Input{{Data: []byte("hello")}},
			})
			check(b, err)
		})
		n.done.Wait()
	}
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// delayed is the address of a relay that delivers bytes after a delay, in both directions.
func delayed(b *testing.B, address string, delay time.Duration) string {
	b.Helper()
	u, err := url.Parse(address)
	check(b, err)
	to := u.Host
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	check(b, err)
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			go relay(in, out, delay)
			go relay(out, in, delay)
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

type piece struct {
	at   time.Time
	data []byte
}

func relay(from, to net.Conn, delay time.Duration) {
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			buffer := make([]byte, 64<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				pieces <- piece{time.Now().Add(delay), buffer[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	defer from.Close()
	defer to.Close()
	for p := range pieces {
		time.Sleep(time.Until(p.at))
		if _, err := to.Write(p.data); err != nil {
			return
		}
	}
}
