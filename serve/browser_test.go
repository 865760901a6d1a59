package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/serve"
)

// browse opens a page in Chromium, and returns the result that it posts to /result of its own server.
func browse(t *testing.T, url string, results <-chan string) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		testskip.Missing(t, "chromium is not installed (Debian: apt-get install chromium)")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	profile, err := os.MkdirTemp("", "mortise-browser-") //nolint:usetesting // a file that a dying browser leaves is no failure
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	var log lockedLog
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--no-proxy-server",
		"--remote-debugging-port=0", "--user-data-dir="+profile, url)
	cmd.Stdout, cmd.Stderr = &log, &log
	group(cmd)
	cmd.WaitDelay = 10 * time.Second
	must(t, cmd.Start())
	defer func() { cancel(); _ = cmd.Wait() }()
	select {
	case r := <-results:
		return r
	case <-ctx.Done():
		t.Fatalf("the page has no result; chromium: %.2000s", log.String())
		return ""
	}
}

// lockedLog keeps what a program writes.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// pages serves a page at /page, takes its result at /result, and passes all else on.
func pages(page string, results chan<- string, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<!doctype html><title>test</title><body><script>"+page+"</script>")
		case "/result":
			data, _ := io.ReadAll(r.Body)
			results <- string(data)
		default:
			rest.ServeHTTP(w, r)
		}
	})
}

// cutter is a TCP proxy that cuts connections.
type cutter struct {
	net.Listener

	target string
	mu     sync.Mutex
	conns  []net.Conn
	work   sync.WaitGroup
}

func newCutter(t *testing.T, target string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &cutter{Listener: l, target: target}
	c.work.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			c.work.Go(func() { c.pass(in) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); c.cut(); c.work.Wait() })
	return c
}

func (c *cutter) pass(in net.Conn) {
	out, err := net.Dial("tcp", c.target)
	if err != nil {
		_ = in.Close()
		return
	}
	c.mu.Lock()
	c.conns = append(c.conns, in, out)
	c.mu.Unlock()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].Close()
		})
	}
	both.Wait()
}

// cut closes all connections.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// watches is a page that follows a run with an EventSource. It reports what it got when the source is closed for good.
const watches = `
const got = [], source = new EventSource("/v1/runs/" + location.hash.slice(1) + "/events");
for (const name of ["run_started", "step_started", "text_delta", "usage", "step_ended", "run_ended", "settled"])
	source.addEventListener(name, e => {
		got.push(e.lastEventId + " " + name);
		if (name == "step_started") fetch("/seen", {method: "POST"});
	});
let opened = 0;
source.onopen = () => opened++;
source.onerror = () => {
	if (source.readyState == EventSource.CLOSED) fetch("/result", {method: "POST", body: JSON.stringify({got, opened})});
};`

// TestBrowser_follows: an EventSource in a browser follows a run to its end through a connection that is cut, and
// does not connect again when the run has settled.
func TestBrowser_follows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	run := w.submit("/v1/threads/t/runs", say("hold")).Run
	<-w.mind.begun
	results, seen := make(chan string, 8), make(chan struct{}, 8)
	front := httptest.NewServer(pages(watches, results, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/seen" {
			seen <- struct{}{}
			return
		}
		w.server.Public().ServeHTTP(out, r)
	})))
	t.Cleanup(front.Close)
	proxy := newCutter(t, front.Listener.Addr().String())
	go func() {
		select {
		case <-seen:
			proxy.cut()
			close(w.mind.release)
		case <-t.Context().Done():
		}
	}()
	var page struct {
		Got    []string
		Opened int
	}
	must(t, json.Unmarshal([]byte(browse(t, "http://"+proxy.Addr().String()+"/page#"+run, results)), &page))
	var want []string
	for _, e := range w.follow(run, "").rest() {
		if e.name != "phase" {
			want = append(want, e.id+" "+e.name)
		}
	}
	if !slices.Equal(page.Got, want) {
		t.Errorf("the page has %q, want %q", page.Got, want)
	}
	if page.Opened != 2 {
		t.Errorf("the page connected %d times", page.Opened)
	}
}

// attacks is a page that tries to start runs at the server and the run of location.hash, and to read from it.
const attacks = `
const [api, id] = location.hash.slice(1).split("!"), run = JSON.stringify({input: "say hi"}), out = {};
const attempt = async (name, path, options) => {
	try { const r = await fetch(api + path, options); out[name] = r.type == "opaque" ? "opaque" : r.status + " " + await r.text(); }
	catch (e) { out[name] = "refused"; }
};
const source = url => new Promise(done => {
	const s = new EventSource(url);
	s.onmessage = s.onopen = () => { s.close(); done("open"); };
	s.onerror = () => { s.close(); done("refused"); };
});
(async () => {
	const json = {"Content-Type": "application/json"};
	await attempt("simple", "/v1/threads/simple/runs", {method: "POST", mode: "no-cors", body: run});
	await attempt("blob", "/v1/threads/blob/runs", {method: "POST", mode: "no-cors", body: new Blob([run], {type: "application/json"})});
	await attempt("json", "/v1/threads/json/runs", {method: "POST", headers: json, body: run});
	await attempt("key", "/v1/threads/key/runs", {method: "POST", headers: {...json, "Idempotency-Key": "k"}, body: run});
	await attempt("read", "/v1/threads/mine/messages");
	await attempt("hidden", "/v1/threads/mine/messages", {mode: "no-cors"});
	await attempt("cancel", "/v1/runs/" + id + "/cancel", {method: "POST", mode: "no-cors"});
	await attempt("delete", "/v1/threads/mine/compactions/latest", {method: "DELETE"});
	out.beacon = navigator.sendBeacon(api + "/v1/threads/beacon/runs", run) ? "sent" : "refused";
	out.source = await source(api + "/v1/runs/" + id + "/events");
	await fetch("/result", {method: "POST", body: JSON.stringify(out)});
	const form = document.body.appendChild(document.createElement("form"));
	form.method = "POST"; form.action = api + "/v1/threads/form/runs"; form.enctype = "text/plain";
	const field = form.appendChild(document.createElement("input"));
	field.name = '{"input":"say hi","x":"'; field.value = '"}';
	form.submit();
})();`

// TestBrowser_otherOrigin: a page of another origin starts nothing, cancels nothing and reads nothing; one of a configured
// origin does all of it.
func TestBrowser_otherOrigin(t *testing.T) {
	t.Parallel()
	results, forms := make(chan string, 8), make(chan string, 8)
	front := httptest.NewServer(pages(attacks, results, http.NotFoundHandler()))
	t.Cleanup(front.Close)
	for name, allowed := range map[string]bool{"foreign": false, "configured": true} {
		w := newWorld(t, options{serve: func(c *serve.Config) {
			if allowed {
				c.Origins = []string{front.URL}
			}
		}})
		run := w.submit("/v1/threads/mine/runs", say("hold")).Run
		<-w.mind.begun
		api := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			w.server.Public().ServeHTTP(out, r)
			if r.URL.Path == "/v1/threads/form/runs" { // the page sends it last
				select {
				case result := <-results:
					forms <- result
				case <-t.Context().Done():
				}
			}
		}))
		t.Cleanup(api.Close)
		var page map[string]string
		must(t, json.Unmarshal([]byte(browse(t, front.URL+"/page#"+api.URL+"!"+run, forms)), &page))
		started := map[string]bool{}
		for _, thread := range []string{"simple", "blob", "json", "key", "beacon", "form"} {
			started[thread] = w.do(http.MethodGet, "/v1/threads/"+thread, "").StatusCode != http.StatusNotFound
		}
		var now struct{ Status string }
		w.want(http.StatusOK, http.MethodGet, "/v1/runs/"+run, "").decode(t, &now)
		w.checkPage(name, allowed, page, started, now.Status)
		w.want(http.StatusOK, http.MethodPost, "/v1/runs/"+run+"/cancel", "")
	}
}

// checkPage compares what a page could do with what it may.
func (w *world) checkPage(name string, allowed bool, page map[string]string, started map[string]bool, status string) {
	w.t.Helper()
	for thread, is := range started {
		// What needs no preflight has another content type, which is refused even of a page that may use the API.
		if may := allowed && (thread == "json" || thread == "key"); is != may {
			w.t.Errorf("%s: a run was started in the thread %q: %v", name, thread, is)
		}
	}
	for _, route := range []string{"json", "key", "read"} {
		if got := page[route]; strings.HasPrefix(got, "20") != allowed || !allowed && got != "refused" {
			w.t.Errorf("%s: %s is %.200q", name, route, got)
		}
	}
	want := map[bool]string{false: "refused", true: "open"}[allowed]
	if page["source"] != want || page["hidden"] == "" {
		w.t.Errorf("%s: the page has %v", name, page)
	}
	if ended := status == "done"; ended != allowed {
		w.t.Errorf("%s: the run is %s", name, status)
	}
	w.t.Log(name, fmt.Sprint(page))
}
