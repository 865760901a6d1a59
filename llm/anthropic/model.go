package anthropic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

const (
	messagesPath = "v1/messages"
	countPath    = "v1/messages/count_tokens"
	// defaultMaxTokens is within the output limit of every model since Claude 4.
	defaultMaxTokens = 32_000
)

// Config makes a [Model].
type Config struct {
	// BaseURL is the root of the API, https://api.anthropic.com when empty.
	BaseURL string
	// Key is sent as x-api-key. Required unless BaseURL is set.
	Key string
	// HTTP is http.DefaultClient when nil. Its Timeout bounds a whole stream. Redirects are not followed.
	HTTP *http.Client
	// MaxTokens limits an answer, thinking included, unless the request overrides it; 32,000 when 0.
	MaxTokens int64
	// NoCache disables cache breakpoints.
	NoCache bool
}

// Model calls Claude. It implements [llm.Model], [llm.Streamer] and [llm.Counter].
type Model struct {
	cfg    Config
	client sdk.Client
}

var (
	_ llm.Streamer = (*Model)(nil)
	_ llm.Counter  = (*Model)(nil)
	_ llm.Provided = (*Model)(nil)
)

// Provider implements [llm.Provided].
func (*Model) Provider() string { return "anthropic" }

// New checks the config and returns a model. It sends no request.
func New(cfg Config) (*Model, error) {
	if cfg.Key == "" && cfg.BaseURL == "" {
		return nil, errors.New("anthropic: Config.Key is missing")
	}
	if cfg.MaxTokens < 0 {
		return nil, fmt.Errorf("anthropic: Config.MaxTokens is %d, must not be negative", cfg.MaxTokens)
	}
	cfg.MaxTokens = cmp.Or(cfg.MaxTokens, defaultMaxTokens)
	base := strings.TrimSuffix(strings.TrimRight(cmp.Or(cfg.BaseURL, "https://api.anthropic.com"), "/"), "/v1")
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("anthropic: Config.BaseURL is not a URL such as https://api.anthropic.com")
	}
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry(), option.WithMaxRetries(0),
		option.WithBaseURL(base), option.WithHTTPClient(unredirected(cmp.Or(cfg.HTTP, http.DefaultClient))),
		option.WithHeader("User-Agent", "mortise"),
	}
	if cfg.Key != "" {
		options = append(options, option.WithAPIKey(cfg.Key))
	}
	return &Model{cfg: cfg, client: sdk.NewClient(options...)}, nil
}

// unredirected returns a client that follows no redirects: net/http would forward the key to another host.
func unredirected(c *http.Client) *http.Client {
	out := *c
	out.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &out
}

// Infer implements [llm.Model].
func (m *Model) Infer(ctx context.Context, r llm.Request) (*abi.Response, error) {
	var message sdk.Message
	q, err := m.post(ctx, &r, messagesPath, &message)
	if err != nil {
		return nil, m.failure(ctx, r.Model, err)
	}
	if message.StopReason == sdk.StopReasonRefusal {
		return nil, m.refusal(r.Model, &message.StopDetails)
	}
	return q.response(&message)
}

// CountTokens implements [llm.Counter]. It returns [llm.ErrNoCount] if the server lacks the endpoint.
func (m *Model) CountTokens(ctx context.Context, r llm.Request) (int64, error) {
	var count sdk.MessageTokensCount
	if _, err := m.post(ctx, &r, countPath, &count); err != nil {
		if lacksEndpoint(err) {
			return 0, llm.ErrNoCount
		}
		return 0, m.failure(ctx, r.Model, err)
	}
	return count.InputTokens, nil
}

// post sends a request, and repeats it without thinking blocks if the API rejects those.
func (m *Model) post(ctx context.Context, r *llm.Request, path string, into any, options ...option.RequestOption) (*request, error) {
	q, err := m.request(r, true)
	if err != nil {
		return nil, err
	}
	err = q.send(ctx, &m.client, path, into, options)
	thinks := q.thoughts || q.params.Thinking.OfEnabled != nil
	if err == nil || !thinks || !refusesThinking(err) {
		return q, err
	}
	if q, err = m.request(r, false); err != nil {
		return nil, err
	}
	err = q.send(ctx, &m.client, path, into, options)
	return q, err
}

func (q *request) send(ctx context.Context, client *sdk.Client, path string, into any, options []option.RequestOption) error {
	var body any = q.params
	if path == countPath {
		body = q.counted()
	}
	if q.bound {
		options = append(slices.Clip(options), option.WithHeader("anthropic-beta", sdk.AnthropicBetaThinkingBindingControls2026_08_01))
	}
	return client.Post(ctx, path, body, into, options...)
}
