package openai_test

import (
	"net/http"
	"testing"

	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/llmtest"
	"github.com/mortise-dev/mortise/llm/openai"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// opened returns a model that asks a fake with one of the APIs.
func opened(cfg openai.Config) func(*testing.T, *providertest.Server) llm.Model {
	return func(t *testing.T, s *providertest.Server) llm.Model {
		t.Helper()
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		own := cfg
		own.BaseURL, own.Key, own.HTTP = s.URL()+"/v1", s.Key(), &http.Client{Transport: transport}
		m, err := openai.New(own)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

func TestContractResponses(t *testing.T) {
	t.Parallel()
	llmtest.TestModel(t, opened(openai.Config{Summary: "auto"}), llmtest.Options{Model: "gpt-4.1", Thinker: "gpt-5"})
}

func TestContractChat(t *testing.T) {
	t.Parallel()
	llmtest.TestModel(t, opened(openai.Config{API: openai.Chat}), llmtest.Options{
		Model: "gpt-4.1", Thinker: "gpt-5", Without: []llmtest.Ability{llmtest.Signatures, llmtest.Counting},
	})
}
