package serve_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/serve"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/thread"
)

// bench is a server with a SQLite store, as a program has it.
type bench struct {
	b    *testing.B
	mind *mind
	http *httptest.Server
}

func newBench(b *testing.B) *bench {
	b.Helper()
	check := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	file, err := sqlitestore.Open(b.Context(), sqlitestore.Config{Path: filepath.Join(b.TempDir(), "mailbox.db")})
	check(err)
	store := file
	records, err := thread.NewRecorder(b.Context(), file, thread.RecordConfig{})
	check(err)
	w := &bench{b: b, mind: newMind()}
	process, err := mortise.New(b.Context(), mortise.Config{
		Store: store, Records: records, Agents: map[string]mortise.Agent{"a": {Model: w.mind}},
		Compaction: &compaction.Config{Summarizer: compaction.Ledger{}},
	})
	check(err)
	check(process.Start(b.Context()))
	server, err := serve.New(serve.Config{Runtime: process, Records: thread.RecordsOf(file), Limits: serve.Limits{Rate: -1, Streams: 2000}})
	check(err)
	w.http = httptest.NewUnstartedServer(nil)
	w.http.Config = server.HTTP(server.Public())
	w.http.Start()
	b.Cleanup(func() {
		_ = server.Close()
		w.http.Close()
		_ = process.Close(context.Background())
		_ = records.Close(context.Background())
		_ = file.Close(context.Background())
	})
	return w
}

// run submits a text, reads the events of its run to the end, and returns when the first one came.
func (w *bench) run(path, text string) time.Duration {
	w.b.Helper()
	begin := time.Now()
	resp, err := post(w.b.Context(), w.http.Client(), w.http.URL+path, say(text))
	if err != nil {
		w.b.Fatal(err)
	}
	defer resp.Body.Close()
	first, settled := time.Duration(0), false
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "event: ") {
			if first == 0 {
				first = time.Since(begin)
			}
			settled = lines.Text() == "event: settled"
		}
	}
	if !settled {
		w.b.Fatalf("%d: the stream has no end", resp.StatusCode)
	}
	return first
}

func post(ctx context.Context, c *http.Client, url, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {eventStream}}
	return c.Do(req)
}

// newFloor is a server that commits each request to SQLite and answers: what the first event cannot be faster than.
func newFloor(b *testing.B) *httptest.Server {
	b.Helper()
	db, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "floor.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(b.Context(), "CREATE TABLE t (body BLOB)"); err != nil {
		b.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if _, err := db.ExecContext(r.Context(), "INSERT INTO t VALUES (?)", body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	b.Cleanup(s.Close)
	return s
}

// quantiles reports the median and the 99th percentile of durations.
func quantiles(b *testing.B, list []time.Duration, name string) {
	b.Helper()
	slices.Sort(list)
	for _, q := range []int{50, 99} {
		b.ReportMetric(float64(list[(len(list)-1)*q/100].Microseconds())/1000, fmt.Sprintf("ms-p%d-%s", q, name))
	}
}

// BenchmarkFirstEvent is the time from a request to the first event of its run on an idle server, in turns with a bare
// HTTP request that is one commit of SQLite.
func BenchmarkFirstEvent(b *testing.B) {
	w, floor := newBench(b), newFloor(b)
	var first, bare []time.Duration
	w.run("/v1/runs", "say hi")
	for b.Loop() {
		begin := time.Now()
		resp, err := post(b.Context(), floor.Client(), floor.URL, say("say hi"))
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		bare = append(bare, time.Since(begin))
		first = append(first, w.run("/v1/runs", "say hi"))
	}
	quantiles(b, first, "first")
	quantiles(b, bare, "floor")
}

// memory is the heap in use with the stacks, and the resident set of the process, in MiB.
func memory() (heap, resident float64) {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	status, _ := os.ReadFile("/proc/self/status") // 0 where there is none
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			kib, _ := strconv.ParseFloat(f[1], 64)
			resident = kib / 1024
		}
	}
	return float64(m.HeapInuse+m.StackInuse) / (1 << 20), resident
}

// BenchmarkStreams is the memory of 1,000 open event streams of one run, each of which has got an event. The clients
// are plain sockets.
func BenchmarkStreams(b *testing.B) {
	const most = 1000
	if n := openFiles(); n < 2*most+200 {
		testskip.Skip(b, "%d open files are allowed, %d needed", n, 2*most+200)
	}
	w := newBench(b)
	resp, err := post(b.Context(), w.http.Client(), w.http.URL+"/v1/threads/t/runs", say("hold"))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	<-w.mind.begun
	run := filepath.Base(resp.Header.Get("Location"))
	for b.Loop() {
		heap, resident := memory()
		conns := make([]net.Conn, most)
		for i := range conns {
			conns[i] = w.attach(run)
		}
		more, moreResident := memory()
		b.ReportMetric(more-heap, "MiB-heap")
		b.ReportMetric(moreResident-resident, "MiB-resident")
		for _, c := range conns {
			_ = c.Close()
		}
	}
	close(w.mind.release)
	_, _ = io.Copy(io.Discard, resp.Body)
}

// attach opens a stream, and reads until an event has come.
func (w *bench) attach(run string) net.Conn {
	w.b.Helper()
	address := w.http.Listener.Addr().String()
	c, err := net.Dial("tcp", address)
	if err != nil {
		w.b.Fatal(err)
	}
	fmt.Fprintf(c, "GET /v1/runs/%s/events HTTP/1.1\r\nHost: %s\r\n\r\n", run, address)
	var got strings.Builder
	buf := make([]byte, 1024)
	for !strings.Contains(got.String(), "event: step_started") {
		n, err := c.Read(buf)
		if err != nil {
			w.b.Fatalf("%v after %q", err, got.String())
		}
		got.Write(buf[:n])
	}
	return c
}

// BenchmarkRuns is the memory over many runs, each of a thread of its own. MORTISE_BENCH_RUNS is how many;
// docs/performance.md has 10,000.
func BenchmarkRuns(b *testing.B) {
	runs, _ := strconv.Atoi(os.Getenv("MORTISE_BENCH_RUNS"))
	runs = max(runs, 200)
	for b.Loop() {
		w := newBench(b)
		var early float64
		for i := range runs {
			w.run("/v1/runs", "say hi there, this is run "+strconv.Itoa(i))
			switch done := i + 1; done {
			case runs / 10, runs / 2, runs:
				heap, resident := memory()
				if early == 0 {
					early = heap
				}
				b.ReportMetric(heap, fmt.Sprintf("MiB-heap-at-%d", done))
				b.ReportMetric(resident, fmt.Sprintf("MiB-resident-at-%d", done))
				if done == runs {
					b.ReportMetric((heap-early)*(1<<20)/float64(runs-runs/10), "B-heap/run")
				}
			}
		}
	}
}
