package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// client asks over HTTP and tries again for as long as its context lasts: the server may be dead.
type client struct {
	w    *world
	http *http.Client
	// header is sent with each request.
	header http.Header
}

// retry is how long to wait for a server that is not there.
const retry = 50 * time.Millisecond

// call sends a request until it is answered, and returns the status and the body.
func (c *client) call(ctx context.Context, admin bool, method, path string, body any) (int, []byte, error) {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
	}
	for {
		status, out, err := c.once(ctx, admin, method, path, data)
		if err == nil && status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests {
			return status, out, nil
		}
		if ctx.Err() != nil {
			return 0, nil, errors.Join(ctx.Err(), err)
		}
		pause(ctx, retry)
	}
}

func (c *client) once(ctx context.Context, admin bool, method, path string, data []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.w.at(admin)+path, bytes.NewReader(data))
	if err != nil {
		return 0, nil, err
	}
	maps.Copy(req.Header, c.header)
	switch {
	case method == http.MethodPut:
		req.Header.Set("Content-Type", "application/wasm")
	case data != nil:
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	return resp.StatusCode, out, err
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// event is one of a stream.
type event struct {
	id, name string
	data     map[string]any
}

// follow reads the events of a run to its end. Its connection is cut now and then, and it continues after the
// last event that it has.
func (c *client) follow(ctx context.Context, run string) ([]event, error) {
	var all []event
	for ctx.Err() == nil {
		last := ""
		if len(all) > 0 {
			last = all[len(all)-1].id
		}
		got, err := c.stream(ctx, run, last, rand.IntN(40)+1)
		all = append(all, got...)
		if n := len(all); n > 0 && all[n-1].name == "settled" {
			return all, nil
		}
		if err != nil {
			pause(ctx, retry)
		}
	}
	return all, ctx.Err()
}

// stream reads at most so many events after one.
func (c *client) stream(ctx context.Context, run, after string, most int) (out []event, err error) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.w.at(false)+"/v1/runs/"+run+"/events", http.NoBody)
	if err != nil {
		return nil, err
	}
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("%d %s", resp.StatusCode, text)
	}
	var e event
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.data); err != nil {
				return out, err
			}
		case "":
			if e.name == "" {
				continue // a comment ends like an event
			}
			out, e = append(out, e), event{}
			if n := len(out); n == most || out[n-1].name == "settled" {
				return out, nil
			}
		}
	}
	return out, errors.Join(lines.Err(), io.ErrUnexpectedEOF)
}

// place is the id of an event as numbers: the dispatch and the event in it.
func (e event) place() (dispatch, seq uint64) {
	d, s, _ := strings.Cut(e.id, "-")
	dispatch, _ = strconv.ParseUint(d, 10, 64)
	if s == "end" {
		return dispatch, 1 << 63
	}
	seq, _ = strconv.ParseUint(s, 10, 64)
	return dispatch, seq
}
