package program_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-dev/mortise/internal/program"
)

// collector takes spans by OTLP. It answers with the statuses in turn, and then with 200.
type collector struct {
	*httptest.Server

	mu       sync.Mutex
	statuses []int
	requests []*http.Request
	names    []string
}

func newCollector(t *testing.T, statuses ...int) *collector {
	t.Helper()
	c := &collector{statuses: statuses}
	c.Server = httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r)
	if len(c.statuses) > 0 {
		w.WriteHeader(c.statuses[0])
		c.statuses = c.statuses[1:]
		return
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(body)
	}
	data, err := io.ReadAll(body)
	var traces tracepb.TracesData
	if err != nil || proto.Unmarshal(data, &traces) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, r := range traces.GetResourceSpans() {
		for _, s := range r.GetScopeSpans() {
			for _, span := range s.GetSpans() {
				c.names = append(c.names, span.GetName())
			}
		}
	}
}

// variables are an environment.
func variables(list ...string) func(string) string {
	return func(name string) string {
		if i := slices.Index(list, name); i >= 0 && i%2 == 0 {
			return list[i+1]
		}
		return ""
	}
}

// export sends spans of these names, one after the other, by the client of an environment, and returns what was logged.
func export(t *testing.T, getenv func(string) string, names ...string) string {
	t.Helper()
	var log bytes.Buffer
	client, err := program.NewOTLP(getenv, &log)
	if err != nil || client == nil {
		t.Fatalf("client %v: %v", client, err)
	}
	exporter, err := otlptrace.New(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	for _, name := range names {
		_, span := provider.Tracer("test").Start(t.Context(), name)
		span.End()
	}
	if err := provider.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	return log.String()
}

func TestOTLP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statuses []int
		extra    []string
		path     string
		names    []string
		requests int
		log      string
	}{
		"plain": {nil, nil, "/v1/traces", []string{"one", "two"}, 2, ""},
		"with headers": {
			nil, []string{"OTEL_EXPORTER_OTLP_HEADERS", "X-Key=a%20b, X-Other=2", "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"}, "/v1/traces", []string{"one", "two"}, 2, "",
		},
		"again": {[]int{http.StatusServiceUnavailable}, nil, "/v1/traces", []string{"one", "two"}, 3, ""},
		"refused": {
			[]int{http.StatusUnauthorized, http.StatusUnauthorized}, nil, "/v1/traces", nil, 2, "spans_not_exported",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := newCollector(t, c.statuses...)
			log := export(t, variables(append(c.extra, "OTEL_EXPORTER_OTLP_ENDPOINT", to.URL+"/")...), "one", "two")
			if !slices.Equal(to.names, c.names) || len(to.requests) != c.requests {
				t.Errorf("%d requests with the spans %q, want %d and %q", len(to.requests), to.names, c.requests, c.names)
			}
			for _, r := range to.requests {
				if r.URL.Path != c.path || r.Header.Get("Content-Type") != "application/x-protobuf" {
					t.Errorf("%s %s", r.URL, r.Header)
				}
				if len(c.extra) > 0 && (r.Header.Get("X-Key") != "a b" || r.Header.Get("X-Other") != "2" || r.Header.Get("Content-Encoding") != "gzip") {
					t.Errorf("the header is %v", r.Header)
				}
			}
			if strings.Count(log, "\n") != strings.Count(log, "spans_not_exported") || !strings.Contains(log, c.log) || strings.Count(log, "\n") > 1 {
				t.Errorf("the log is %q", log)
			}
		})
	}
}

func TestOTLP_path(t *testing.T) {
	t.Parallel()
	to := newCollector(t)
	export(t, variables("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", to.URL+"/spans", "OTEL_TRACES_EXPORTER", "otlp"), "one")
	if len(to.requests) != 1 || to.requests[0].URL.Path != "/spans" {
		t.Errorf("%d requests", len(to.requests))
	}
}

func TestOTLP_off(t *testing.T) {
	t.Parallel()
	const endpoint, url = "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"
	for _, off := range [][]string{
		{}, {endpoint, url, "OTEL_SDK_DISABLED", "true"}, {endpoint, url, "OTEL_TRACES_EXPORTER", "none"},
	} {
		if c, err := program.NewOTLP(variables(off...), io.Discard); c != nil || err != nil {
			t.Errorf("%q: %v, %v", off, c, err)
		}
	}
	for want, wrong := range map[string][]string{
		"set it to otlp or none":        {endpoint, url, "OTEL_TRACES_EXPORTER", "zipkin"},
		"http/protobuf":                 {endpoint, url, "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
		"is not supported":              {endpoint, url, "OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem"},
		"is not a URL":                  {endpoint, "collector:4318"},
		"OTEL_EXPORTER_OTLP_HEADERS":    {endpoint, url, "OTEL_EXPORTER_OTLP_HEADERS", "s3cr3t"},
		"OTEL_EXPORTER_OTLP_TIMEOUT is": {endpoint, url, "OTEL_EXPORTER_OTLP_TIMEOUT", "10s"},
	} {
		if _, err := program.NewOTLP(variables(wrong...), io.Discard); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: %v, want %q", wrong, err, want)
		}
	}
}
