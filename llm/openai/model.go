package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// API is one of the two that a server may have.
type API string

// APIs.
const (
	Responses API = "responses"
	Chat      API = "chat"
)

// Config makes a [Model]. Zero fields mean the default.
type Config struct {
	// BaseURL is where the paths of the API begin, https://api.openai.com/v1 by default.
	BaseURL string
	// Key is sent as a bearer token. A local server may need none. The environment is not
	// read.
	Key string
	// API is [Responses] by default.
	API API
	// HTTP is http.DefaultClient when nil. It should have no timeout of its own: llm.Client
	// bounds requests, and streams by their silence.
	HTTP *http.Client
	// MaxTokens bounds an answer whose request does not. 0 leaves it to the provider.
	MaxTokens int64
	// Summary asks reasoning models for a summary of their reasoning: "auto", "concise" or
	// "detailed". OpenAI gives it to verified organizations only, and refuses requests of
	// others. It is for [Responses].
	Summary string
	// Plain keeps to what every server of [Chat] knows: max_tokens in place of
	// max_completion_tokens, no prompt_cache_key, and one system message at the head; later
	// ones are the user's.
	Plain bool
	// Now is time.Now when nil. It is compared with the date of a Retry-After.
	Now func() time.Time
}

// Model is an [llm.Model], [llm.Streamer] and [llm.Counter].
type Model struct {
	cfg    Config
	client sdk.Client
}

// New checks the config and returns a model. It sends nothing.
func New(cfg Config) (*Model, error) {
	cfg.BaseURL = cmp.Or(cfg.BaseURL, "https://api.openai.com/v1")
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("openai: Config.BaseURL is not the URL of an HTTP server, such as http://127.0.0.1:8000/v1")
	}
	cfg.API = cmp.Or(cfg.API, Responses)
	if cfg.API != Responses && cfg.API != Chat {
		return nil, fmt.Errorf("openai: Config.API is %q, must be %q or %q", cfg.API, Responses, Chat)
	}
	if cfg.MaxTokens < 0 {
		return nil, fmt.Errorf("openai: Config.MaxTokens is %d, must not be negative", cfg.MaxTokens)
	}
	if cfg.HTTP == nil {
		cfg.HTTP = http.DefaultClient
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	options := []option.RequestOption{option.WithBaseURL(cfg.BaseURL), option.WithHTTPClient(cfg.HTTP), option.WithMaxRetries(0)}
	if cfg.Key != "" {
		options = append(options, option.WithAPIKey(cfg.Key))
	}
	// NewClient of the SDK would read keys and addresses from the environment.
	return &Model{cfg: cfg, client: sdk.Client{Options: options}}, nil
}

// Provider implements [llm.Provided].
func (*Model) Provider() string { return "openai" }

// Infer asks without streaming.
func (m *Model) Infer(ctx context.Context, r llm.Request) (*abi.Response, error) {
	return llm.Collect(func(emit func(llm.Delta) bool) error { return m.ask(ctx, r, false, emit) })
}

// Stream asks and emits the answer while it comes.
func (m *Model) Stream(ctx context.Context, r llm.Request, emit func(llm.Delta) bool) error {
	return m.ask(ctx, r, true, emit)
}

// CountTokens asks for the number of prompt tokens. Chat Completions cannot tell, which is
// llm.ErrNoCount.
func (m *Model) CountTokens(ctx context.Context, r llm.Request) (int64, error) {
	if m.cfg.API == Chat {
		return 0, llm.ErrNoCount
	}
	return m.countTokens(ctx, override(r))
}

func (m *Model) ask(ctx context.Context, r llm.Request, stream bool, emit func(llm.Delta) bool) error {
	r = override(r)
	answer := newAnswer(r.Tools, emit)
	if m.cfg.API == Chat {
		return m.chat(ctx, r, stream, answer)
	}
	return m.responses(ctx, r, stream, answer)
}

// override applies the model of the override, and makes sure that there is one.
func override(r llm.Request) llm.Request {
	if r.Override == nil {
		r.Override = &abi.InferenceOverride{}
	}
	if r.Override.Model != nil {
		r.Model = *r.Override.Model
	}
	return r
}

// maxTokens bounds the answer; 0 does not.
func (m *Model) maxTokens(r *llm.Request) int64 {
	if n := r.Override.MaxTokens; n != nil {
		return *n
	}
	return m.cfg.MaxTokens
}
