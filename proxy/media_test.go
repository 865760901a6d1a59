package proxy_test

import (
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/proxy"
)

// TestRedacted_base64: a text in base64 is seen, whatever it is declared as, and taken out in messages and in results; an image passes as it is.
func TestRedacted_base64(t *testing.T) {
	t.Parallel()
	up := newTape(t, nothing)
	s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, masking(func() error { return nil }))})
	secret, image := base64.StdEncoding.EncodeToString([]byte("key "+hunter)), `"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="`
	for name, c := range map[string]struct{ path, part, message, result, redacted string }{
		"messages": {
			"/v1/messages", `{"type":"document","source":{"type":"base64","media_type":"MEDIA","data":"DATA"}}`,
			`{"role":"user","content":[PART,{"type":"image","source":{"type":"base64","media_type":"image/png","data":` + image + `}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[PART]}]}`, `[{"type":"text","text":"key ***"},{"type":"image"`,
		},
		"responses": {
			"/v1/responses", `{"type":"input_file","filename":"f","file_data":"data:MEDIA;base64,DATA"}`,
			`{"role":"user","content":[PART,{"type":"input_image","image_url":` + image + `}]}`,
			`{"type":"function_call_output","call_id":"a","output":[PART]}`, `[{"type":"input_text","text":"key ***"},{"type":"input_image"`,
		},
		"chat": {
			"/v1/chat/completions", `{"type":"file","file":{"filename":"f","file_data":"data:MEDIA;base64,DATA"}}`,
			`{"role":"user","content":[PART,{"type":"image_url","image_url":{"url":` + image + `}}]}`,
			`{"role":"tool","tool_call_id":"a","content":[PART]}`, `[{"type":"text","text":"key ***"},{"type":"image_url"`,
		},
	} {
		for _, media := range []string{"text/plain", "application/octet-stream"} {
			for _, item := range []string{c.message, c.result} {
				part := strings.NewReplacer("MEDIA", media, "DATA", secret).Replace(c.part)
				list := "messages"
				if name == "responses" {
					list = "input"
				}
				resp, got := post(t, s.url+c.path, `{"model":"m","max_tokens":9,"`+list+`":[`+strings.Replace(item, "PART", part, 1)+`],"tools":[]}`)
				sent, _ := up.last()
				if resp.StatusCode != http.StatusOK || contains(sent, secret) || contains(sent, hunter) || !contains(sent, "key ***") || !json.Valid(sent) {
					t.Errorf("%s: %s %s: %s", name, resp.Status, got, sent)
				}
				if item == c.message && (!contains(sent, c.redacted) || !contains(sent, image)) {
					t.Errorf("%s: %s", name, sent)
				}
			}
		}
	}
}

// TestMedia: a proxy with a plugin that fails closed at messages or results logs at the start that images pass it unseen, and other ones do not.
func TestMedia(t *testing.T) {
	t.Parallel()
	for failure, want := range map[abi.FailurePolicy]bool{abi.FailRun: true, abi.FailIgnore: false} {
		var log strings.Builder
		h := hook{name: "redact", hooks: []abi.Hook{{Phase: abi.AfterToolExecute, Mode: abi.ModeTransform, OnFailure: failure}}, answer: nothingToSay}
		start(t, "http://127.0.0.1:1", proxy.Config{Runtime: runtimeOf(t, h), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if got := strings.Contains(log.String(), `msg=proxy_media_not_seen plugin=redact hint="images, PDFs and audio`); got != want {
			t.Errorf("%s: logged %s", failure, log.String())
		}
	}
}
