package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/store/memstore"
)

// long is a request of about n bytes, as an agent sends it after many rounds, and so many rounds more.
func long(n, more int) string {
	var b strings.Builder
	b.WriteString(`{"model":"claude-sonnet-4-5","max_tokens":100,"stream":true,"system":"x","tools":[{"name":"bash","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"begin"}`)
	text := strings.Repeat("words of code() {} \\n", 150)
	for i := 0; b.Len() < n || more > 0; i++ {
		if b.Len() >= n {
			text = text[:220]
			more--
		}
		fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"bash","input":{"command":"ls %d"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%d %s"}]}`, i, i, i, i, text)
	}
	b.WriteString(`]}`)
	return b.String()
}

const streamed = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":100000,\"output_tokens\":1}}}\n\n" +
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hello\"}}\n\n" +
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\n" +
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

func streamServer(tb testing.TB) *httptest.Server {
	tb.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, streamed)
	}))
	tb.Cleanup(s.Close)
	return s
}

// bundled loads plugins of the examples: a gate, one that redacts results and one that follows the files of a conversation.
func bundled(tb testing.TB) []phases.Plugin {
	tb.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		tb.Fatal(err)
	}
	h, err := host.New(host.Config{CacheDir: filepath.Join(cache, "mortise-test")}) // of compiled modules
	if err != nil {
		tb.Fatal(err)
	}
	var entries []plugins.Entry
	for _, name := range []string{"guard", "redact", "index"} {
		entries = append(entries, plugins.Entry{Module: host.Spec{Path: filepath.Join("..", "testdata", "guests", name+".wasm")}})
	}
	set, err := plugins.Load(context.Background(), h, entries)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = set.Close(context.Background())
		_ = h.Close(context.Background())
	})
	return set.Plugins()
}

// far is a compaction whose threshold the sessions do not reach.
func far() *proxy.Compaction {
	c := policy()
	c.Policy.WindowTokens, c.Policy.ThresholdTokens = 1_000_000, 800_000
	return c
}

// The time to the first byte of an answer to a request of 400 KB that grows by a round each time: direct, through a
// plain reverse proxy, and through ours: idle, with three Wasm plugins, the same with a store, and with three plugins
// that see the whole conversation at all phases. The first request of a session, which is all new, is by itself.
func BenchmarkFirstByte(b *testing.B) {
	up := streamServer(b)
	target, _ := url.Parse(up.URL)
	plain := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1})
	defer plain.Close()
	var all []phases.Plugin
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, hook{name: name, hooks: watching{}.Describe().Hooks, answer: nothingToSay})
	}
	three := bundled(b)
	worlds := []struct{ name, url string }{
		{"direct", up.URL},
		{"reverseproxy", plain.URL},
		{"idle", start(b, up.URL, proxy.Config{}).url},
		{"plugins3", start(b, up.URL, proxy.Config{Runtime: runtimeOf(b, three...), Compaction: far()}).url},
		{"stored", start(b, up.URL, proxy.Config{Runtime: runtimeOf(b, three...), Compaction: far(), Store: memstore.New()}).url},
		{"all3", start(b, up.URL, proxy.Config{Runtime: runtimeOf(b, all...), Compaction: far()}).url},
	}
	const rounds = 60
	firsts, times := make([][]time.Duration, len(worlds)), make([][]time.Duration, len(worlds))
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	for n := 0; b.Loop(); n++ {
		body := long(400_000, n%rounds)
		for i, w := range worlds {
			r, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, w.url+"/v1/messages", strings.NewReader(body))
			r.Header.Set("X-Claude-Code-Session-Id", fmt.Sprint("s", n/rounds))
			begin := time.Now()
			resp, err := client.Do(r)
			if err != nil {
				b.Fatal(err)
			}
			in := bufio.NewReader(resp.Body)
			if _, err := in.ReadByte(); err != nil {
				b.Fatal(err)
			}
			if n%rounds == 0 {
				firsts[i] = append(firsts[i], time.Since(begin))
			} else {
				times[i] = append(times[i], time.Since(begin))
			}
			_, _ = io.Copy(io.Discard, in)
			_ = resp.Body.Close()
		}
	}
	report := func(list []time.Duration, p float64, name string) {
		if len(list) > 0 {
			slices.Sort(list)
			b.ReportMetric(float64(list[int(p*float64(len(list)-1))].Microseconds())/1000, name)
		}
	}
	for i, w := range worlds {
		report(times[i], .5, w.name+"-p50-ms")
		report(times[i], .99, w.name+"-p99-ms")
		report(firsts[i], .5, w.name+"-first-ms")
	}
}

// Two hundred streams of 400 KB requests at once take at most 150 MiB more through the proxy than directly.
func TestStreams_memory(t *testing.T) { //nolint:paralleltest // it measures memory
	if proxy.UnderRace {
		testskip.Skip(t, "it measures memory: make test-plain runs it, without the race detector")
	}
	if testing.Short() {
		t.Skip("short")
	}
	hold, came := make(chan chan struct{}, 1), make(chan struct{}, streamsAtOnce)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, streamed[:200])
		_ = http.NewResponseController(w).Flush()
		held := <-hold
		hold <- held
		came <- struct{}{}
		<-held
		_, _ = io.WriteString(w, streamed[200:])
	}))
	defer up.Close()
	body := long(400_000, 0)
	mib := func(url string) float64 {
		var before, during runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		held := make(chan struct{})
		hold <- held
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		var group sync.WaitGroup
		for i := range streamsAtOnce {
			group.Go(func() {
				r, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/v1/messages", strings.NewReader(body))
				r.Header.Set("X-Claude-Code-Session-Id", fmt.Sprint("s", i))
				resp, err := client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			})
		}
		for range streamsAtOnce {
			<-came
		}
		runtime.GC()
		runtime.ReadMemStats(&during)
		<-hold
		close(held)
		group.Wait()
		return float64(during.HeapInuse+during.StackInuse-before.HeapInuse-before.StackInuse) / (1 << 20)
	}
	direct := mib(up.URL)
	through := mib(start(t, up.URL, proxy.Config{Runtime: runtimeOf(t), Compaction: policy()}).url)
	t.Logf("%d streams take %.0f MiB, without a proxy %.0f", streamsAtOnce, through, direct)
	if through-direct > 150 {
		t.Errorf("%d streams take %.0f MiB more than without a proxy", streamsAtOnce, through-direct)
	}
}

// streamsAtOnce is how many streams a proxy is to have at once.
const streamsAtOnce = 200

// Clients that do not read an endless answer hold at most 256 KiB of the proxy each, with and without a gate: the upstream is stopped, and
// nothing piles up (acceptance 9).
func TestSlowReaders(t *testing.T) { //nolint:paralleltest // it measures memory
	const streams, each = 8, 256 << 10
	stalled := make(chan struct{}, 2*streams)
	event := "event: ping\ndata: {\"type\":\"ping\",\"more\":\"" + strings.Repeat("x", 4000) + "\"}\n\n" // text would count: the answer is remembered
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		begin, _, _ := strings.Cut(streamed, "event: content_block_delta")
		_, err := io.WriteString(w, begin)
		for c := http.NewResponseController(w); err == nil; {
			if err = c.SetWriteDeadline(time.Now().Add(time.Second)); err == nil {
				_, err = io.WriteString(w, event)
			}
		}
		stalled <- struct{}{}
		<-r.Context().Done()
	}))
	defer up.Close()
	for name, cfg := range map[string]proxy.Config{"bare": {}, "gated": {Runtime: runtimeOf(t, watching{})}} {
		s := start(t, up.URL, cfg)
		var before, during runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var conns []net.Conn
		for range streams {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
			_, _ = fmt.Fprintf(c, "POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nAnthropic-Version: x\r\nContent-Length: %d\r\n\r\n%s", len(hello), hello)
		}
		for range streams {
			<-stalled
		}
		runtime.GC()
		runtime.ReadMemStats(&during)
		per := (int64(during.HeapInuse+during.StackInuse) - int64(before.HeapInuse+before.StackInuse)) / streams //nolint:gosec // sizes of memory
		t.Logf("%s: %d KiB a stream, the test's ends included", name, per>>10)
		if !proxy.UnderRace && per > each {
			t.Errorf("%s: a stream that is not read takes %d KiB", name, per>>10)
		}
		for _, c := range conns {
			_ = c.Close()
		}
	}
}
