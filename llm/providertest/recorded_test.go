package providertest_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// exchange is a recorded request, and the status with which the real API answered.
type exchange struct {
	file, host, path, body string
	status                 int
}

// TestTakesRecordedRequests sends what the real APIs took.
func TestTakesRecordedRequests(t *testing.T) {
	t.Parallel()
	root := os.Getenv("MORTISE_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	root = filepath.Join(root, "data", "payloads")
	if _, err := os.Stat(root); err != nil {
		testskip.Skip(t, "no recorded traffic in data/payloads of the shared folder (set MORTISE_SHARED): %v", err)
	}
	plain := providertest.ModelSpec{Thinking: providertest.ThinkingNone}
	w := open(t, providertest.Config{Models: map[string]providertest.ModelSpec{
		"claude-sonnet-4-20250514": {}, "claude-3-opus-20240229": plain, "gpt-3.5-turbo": plain, "gpt-4o": plain, "gpt-4o-mini": plain,
		"gpt-4o-2024-08-06": plain, "gpt-5": {}, "o4-mini": {},
	}})
	sent := map[string]int{}
	for _, e := range recordings(t, root) {
		if e.host != "api.anthropic.com" && e.host != "api.openai.com" || e.path == "/v1/embeddings" {
			continue
		}
		status, answer, _ := w.post(e.path, e.body)
		sent[e.host]++
		if status != e.status {
			t.Errorf("%s: the fake answers %d, the API %d: %s\n%s", e.file, status, e.status, answer, e.body)
		}
	}
	if sent["api.anthropic.com"] < 10 || sent["api.openai.com"] < 40 {
		t.Errorf("only %v requests were found", sent)
	}
}

func recordings(t *testing.T, root string) (out []exchange) {
	t.Helper()
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml":
			out = append(out, cassette(t, path, b)...)
		case ".httprr":
			out = append(out, trace(t, path, b)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func cassette(t *testing.T, path string, b []byte) (out []exchange) {
	t.Helper()
	var file struct {
		Interactions []struct {
			Request  struct{ URL, Body string }
			Response struct{ Code int }
		}
	}
	if err := yaml.Unmarshal(b, &file); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, i := range file.Interactions {
		u, err := url.Parse(i.Request.URL)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, exchange{path, u.Host, u.Path, i.Request.Body, i.Response.Code})
	}
	return out
}

// trace reads pairs of a request and an answer, with their sizes before them.
func trace(t *testing.T, path string, b []byte) (out []exchange) {
	t.Helper()
	_, rest, _ := bytes.Cut(b, []byte("\n"))
	for len(rest) > 0 {
		var asked, answered int
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		if _, err := fmt.Sscan(string(line), &asked, &answered); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		head, body, _ := strings.Cut(strings.ReplaceAll(string(after[:asked]), "\r\n", "\n"), "\n\n")
		fields := strings.Fields(head)
		status := 0
		if _, err := fmt.Sscanf(string(after[asked:asked+16]), "HTTP/%s %d", new(string), &status); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		rest = after[asked+answered:]
		u, err := url.Parse(fields[1])
		if err != nil || fields[0] != http.MethodPost {
			continue
		}
		out = append(out, exchange{path, u.Host, u.Path, body, status})
	}
	return out
}
