package program

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// otlp sends spans by OTLP over HTTP. It is an otlptrace.Client: the one of otlptracehttp links gRPC, which makes the program
// half as large again.
type otlp struct {
	url     string
	headers http.Header
	timeout time.Duration
	gzip    bool
	http    *http.Client
	logger  *slog.Logger
	// down is set while the collector does not take spans, so that it is logged once.
	down atomic.Bool
}

// otlpSetting reads a variable of the OpenTelemetry exporter, the one for traces first.
func otlpSetting(getenv func(string) string, name string) string {
	return cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), getenv("OTEL_EXPORTER_OTLP_"+name))
}

// defaultCollector is where a collector listens, as the OpenTelemetry specification has it.
const defaultCollector = "http://localhost:4318"

// newOTLP makes the client that the environment describes; nil if it describes none.
func newOTLP(getenv func(string) string, logger *slog.Logger) (*otlp, error) {
	exporter := getenv("OTEL_TRACES_EXPORTER")
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || exporter == "none" || exporter == "" && otlpSetting(getenv, "ENDPOINT") == "" {
		return nil, nil //nolint:nilnil // tracing is off
	}
	if exporter != "" && exporter != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %.40q; set it to otlp or none", exporter)
	}
	if p := otlpSetting(getenv, "PROTOCOL"); p != "" && p != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %.40q; set it to http/protobuf, and the endpoint to the collector's port for HTTP, 4318", p)
	}
	for _, name := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
		if otlpSetting(getenv, name) != "" {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_%s is not supported; put a proxy in front of the collector", name)
		}
	}
	to := getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if to == "" {
		to = strings.TrimRight(cmp.Or(getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), defaultCollector), "/") + "/v1/traces"
	}
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT is not a URL; write it as %s", defaultCollector)
	}
	headers, err := otlpHeaders(otlpSetting(getenv, "HEADERS"))
	if err != nil {
		return nil, err
	}
	ms, err := strconv.ParseUint(cmp.Or(otlpSetting(getenv, "TIMEOUT"), "10000"), 10, 31)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT is %.40q; write milliseconds, as 10000", otlpSetting(getenv, "TIMEOUT"))
	}
	return &otlp{
		url: to, headers: headers, timeout: time.Duration(ms) * time.Millisecond, gzip: otlpSetting(getenv, "COMPRESSION") == "gzip",
		http: &http.Client{
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the headers may be secrets
		},
		logger: logger,
	}, nil
}

// otlpHeaders reads a list as key=value,key=value, with values that are URL-encoded. The values may be secrets.
func otlpHeaders(list string) (http.Header, error) {
	out := http.Header{}
	for part := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, value, found := strings.Cut(part, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if !found || err != nil || strings.TrimSpace(key) == "" {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: an entry is not a pair; write it as NAME=VALUE,NAME=VALUE with encoded values")
		}
		out.Set(strings.TrimSpace(key), decoded)
	}
	return out, nil
}

// Start implements otlptrace.Client. It connects to nothing.
func (*otlp) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (o *otlp) Stop(context.Context) error {
	o.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. Spans that the collector does not take are lost, and that is logged.
func (o *otlp) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// The message of the request has the same encoding, and its package links gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err == nil && o.gzip {
		body, err = zipped(body)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, o.timeout)
		defer cancel()
		err = o.send(ctx, body)
	}
	switch {
	case err == nil:
		o.down.Store(false)
	case !o.down.Swap(true):
		o.logger.WarnContext(ctx, "spans_not_exported", "error", err)
	}
	return nil
}

func zipped(body []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(body)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

const (
	otlpAttempts = 3
	otlpPause    = time.Second
)

// send posts a body until the collector has taken it, or refuses it for good.
func (o *otlp) send(ctx context.Context, body []byte) (err error) {
	for n := range otlpAttempts {
		var again bool
		if again, err = o.post(ctx, body); err == nil || !again {
			return err
		}
		pause := time.NewTimer(otlpPause << n)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
	return err
}

// post reports whether another attempt may help.
func (o *otlp) post(ctx context.Context, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header = o.headers.Clone()
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "mortise")
	if o.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	response, err := o.http.Do(r)
	if err != nil {
		return true, err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	switch response.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return again, fmt.Errorf("the collector answered %s", response.Status)
}
