package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// call sends a request and returns the status and the body of the answer.
func call(ctx context.Context, method, url, contentType string, body []byte) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(text)), err
}

// event is one of a run, with the fields that the story tells.
type event struct {
	Type  string `json:"type"`
	Step  int    `json:"step"`
	Delta string `json:"delta"`
	Call  struct {
		Name      string
		Arguments map[string]any
	} `json:"call"`
	Result struct {
		Status string
	} `json:"result"`
	// The rest belongs to compactions and to the end.
	Reason     string `json:"reason"`
	Messages   int    `json:"messages"`
	PreTokens  int64  `json:"pre_tokens"`
	PostTokens int64  `json:"post_tokens"`
	DurationNS int64  `json:"duration_ns"`
	Quality    struct {
		Overall float64
	} `json:"quality"`
	Termination string `json:"termination"`
	Output      string `json:"output"`
	Error       string `json:"error"`
}

// stream submits a run and calls each for all of its events.
func stream(ctx context.Context, url, input string, each func(event) error) error {
	body, err := json.Marshal(map[string]string{"input": input})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%s: %s %s", url, resp.Status, text)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e event
		if json.Unmarshal([]byte(data), &e) != nil {
			continue // fields of other types: the story does not tell such events
		}
		if err := each(e); err != nil {
			return err
		}
	}
	return lines.Err()
}
