package links

import (
	"context"
	"log/slog"

	"github.com/mortise-dev/mortise/host/extismengine"
	"github.com/mortise-dev/mortise/host/sqlitekv"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/anthropic"
	"github.com/mortise-dev/mortise/llm/openai"
	"github.com/mortise-dev/mortise/store/storeurl"
)

// All returns everything that a config of mortise may name.
func All() program.Links {
	return program.Links{
		Providers: []program.Provider{
			{Name: "anthropic", KeyEnv: "ANTHROPIC_API_KEY", Open: openAnthropic},
			{Name: "openai", KeyEnv: "OPENAI_API_KEY", Open: openOpenAI(openai.Responses)},
			{Name: "openai-chat", KeyEnv: "OPENAI_API_KEY", Open: openOpenAI(openai.Chat)},
		},
		OpenStore: openStore,
		OpenKV: func(ctx context.Context, path string) (program.KV, error) {
			return sqlitekv.Open(ctx, sqlitekv.Config{Path: path})
		},
		Engines: []program.Engine{{Name: "extism", New: extismengine.New}},
	}
}

func openAnthropic(c program.Connection) (llm.Model, error) {
	return anthropic.New(anthropic.Config{BaseURL: c.BaseURL, Key: c.Key, HTTP: c.HTTP, MaxTokens: c.MaxTokens})
}

func openOpenAI(api openai.API) func(program.Connection) (llm.Model, error) {
	return func(c program.Connection) (llm.Model, error) {
		return openai.New(openai.Config{BaseURL: c.BaseURL, Key: c.Key, HTTP: c.HTTP, API: api, MaxTokens: c.MaxTokens})
	}
}

func openStore(ctx context.Context, name string, existing bool, logger *slog.Logger) (program.Store, error) {
	return storeurl.Open(ctx, name, storeurl.Options{Existing: existing, Logger: logger})
}
