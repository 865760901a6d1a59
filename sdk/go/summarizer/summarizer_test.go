package summarizer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/summarizer"
)

func guest(answer func(*mortise.SummarizeRequest) (*mortise.Summary, error)) *summarizer.Summarizer {
	return &summarizer.Summarizer{Description: mortise.Description{Name: "g", Version: "1", Policies: []string{"p"}}, Summarize: answer}
}

func Example() {
	g := summarizer.Summarizer{
		Description: mortise.Description{Name: "short", Version: "1.0.0"},
		Summarize: func(r *mortise.SummarizeRequest) (*mortise.Summary, error) {
			return &mortise.Summary{Text: r.Messages[0].Text()}, nil
		},
	}
	// A guest calls summarizer.Register(g) from init. A test drives it like this:
	request, err := mortise.Marshal(&mortise.SummarizeRequest{Messages: []mortise.Message{{Content: []mortise.ContentBlock{mortise.Text("All is well.")}}}})
	if err != nil {
		fmt.Println(err)
	}
	out, err := g.Call(mortise.ExportSummarize, request)
	if err != nil {
		fmt.Println(err)
	}
	var answer mortise.Summary
	if err := mortise.Unmarshal(out, &answer); err != nil {
		fmt.Println(err)
	}
	fmt.Println(answer.Text)
	// Output:
	// All is well.
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for want, g := range map[string]*summarizer.Summarizer{
		"no way":                     guest(func(*mortise.SummarizeRequest) (*mortise.Summary, error) { return nil, errors.New("no way") }),
		"guest panicked: on purpose": guest(func(*mortise.SummarizeRequest) (*mortise.Summary, error) { panic("on purpose") }),
		"neither an answer nor":      guest(func(*mortise.SummarizeRequest) (*mortise.Summary, error) { return nil, nil }),
		"Summarize is nil":           guest(nil),
		"nothing is registered":      nil,
	} {
		if _, err := g.Call(mortise.ExportSummarize, []byte{0x80}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	g := guest(func(*mortise.SummarizeRequest) (*mortise.Summary, error) { return &mortise.Summary{}, nil })
	if _, err := g.Call(mortise.ExportOnPhase, []byte{0x80}); err == nil {
		t.Error("an export of another kind was answered")
	}
	if _, err := g.Call(mortise.ExportSummarize, []byte("\x81")); err == nil {
		t.Error("a broken request was answered")
	}
}

// TestRegister is the only test that touches what the module registers.
func TestRegister(t *testing.T) {
	t.Parallel()
	t.Cleanup(summarizer.Unregister)
	if _, err := summarizer.Call(mortise.ExportDescribe, nil); err == nil || !strings.Contains(err.Error(), "Register") {
		t.Errorf("error %v names no hint", err)
	}
	summarizer.Register(*guest(nil))
	out, err := summarizer.Call(mortise.ExportDescribe, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got mortise.Description
	if err := mortise.Unmarshal(out, &got); err != nil || got.Name != "g" || got.ABI != (mortise.VersionRange{Min: 1, Max: 1}) {
		t.Errorf("%+v, error %v", got, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second Register went through")
		}
	}()
	summarizer.Register(*guest(nil))
}
