package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/mortise-dev/mortise/internal/exit"
)

// ModelConfig is a model of a provider.
type ModelConfig struct {
	// Provider is anthropic, openai (the Responses API) or openai-chat (Chat Completions, which
	// most compatible servers have).
	Provider string `yaml:"provider" jsonschema:"required,enum=anthropic,enum=openai,enum=openai-chat"`
	// Name is the provider's name of the model.
	Name string `yaml:"name" jsonschema:"required"`
	// BaseURL is that of a compatible server; the vendor's own when empty.
	BaseURL string `yaml:"base_url"`
	// Key is ANTHROPIC_API_KEY or OPENAI_API_KEY of the environment when it names nothing.
	Key KeyConfig `yaml:"key"`
	// ClientKey asks with the API key of the client whose conversation a proxy compacts, as far as proxy.client_key_tokens permits.
	ClientKey    bool         `yaml:"client_key"`
	WindowTokens int64        `yaml:"window_tokens"`
	MaxTokens    int64        `yaml:"max_tokens"`
	Price        *PriceConfig `yaml:"price"`
	Retry        RetryConfig  `yaml:"retry"`
}

// KeyConfig names an environment variable or a file that only its owner can read.
type KeyConfig struct {
	Env  string `yaml:"env"`
	File string `yaml:"file"`
	// Value is refused: a key does not belong in the config.
	Value any `yaml:"value" jsonschema:"-"`
}

// PriceConfig is in USD per million tokens.
type PriceConfig struct {
	Input      float64 `yaml:"input"`
	Output     float64 `yaml:"output"`
	CacheRead  float64 `yaml:"cache_read"`
	CacheWrite float64 `yaml:"cache_write"`
}

// RetryConfig bounds repeated requests. Zeros are the defaults of [llm.Retry].
type RetryConfig struct {
	Max       int      `yaml:"max"`
	Fallbacks []string `yaml:"fallbacks"`
}

// Providers of models.
const (
	ProviderAnthropic  = "anthropic"
	ProviderOpenAI     = "openai"
	ProviderOpenAIChat = "openai-chat"
)

// ValidateModels checks models.
func (c *Config) ValidateModels() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		for _, err := range exit.Each(c.Models[name].validate(c.names)) {
			errs = append(errs, fmt.Errorf("models.%.64s.%w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (m ModelConfig) validate(n Names) error {
	var errs []error
	if err := n.provider(m.Provider); err != nil {
		errs = append(errs, fmt.Errorf("provider: %w", err))
	}
	if m.Name == "" {
		errs = append(errs, errors.New("name: is missing; write the provider's name of the model"))
	}
	if m.Key.Value != nil {
		errs = append(errs, errors.New("key: value: a key may not be in the config; name a variable with env, or a private file with file"))
	}
	if m.Key.Env != "" && m.Key.File != "" {
		errs = append(errs, errors.New("key: names both env and file; name one"))
	}
	if m.ClientKey && (m.Key != (KeyConfig{}) || m.BaseURL != "") {
		errs = append(errs, errors.New("client_key: the client's own provider is asked; leave out key and base_url"))
	}
	return errors.Join(append(errs, within("window_tokens", m.WindowTokens, 1<<31), within("max_tokens", m.MaxTokens, 1<<31), m.Price.validate())...)
}

func (p *PriceConfig) validate() error {
	if p != nil && min(p.Input, p.Output, p.CacheRead, p.CacheWrite) < 0 {
		return errors.New("price: is negative; write USD per million tokens")
	}
	return nil
}

// Read returns the value that the environment or the file has.
func (k KeyConfig) Read(c *Config) (string, error) {
	if k.File != "" {
		return PrivateFile(c.Path(k.File))
	}
	if value := os.Getenv(k.Env); value != "" {
		return value, nil
	}
	return "", fmt.Errorf("the environment variable %.80q is not set", k.Env)
}

// ValueConfig is a value that is in the config, in the environment, or in a file that only its owner can read.
type ValueConfig struct {
	Text      string `yaml:"-"`
	KeyConfig `yaml:",inline"`
}

// UnmarshalYAML reads a plain value, or where it is.
func (v *ValueConfig) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&v.Text) == nil {
		return nil
	}
	return unmarshal(&v.KeyConfig)
}

// Read returns the value.
func (v ValueConfig) Read(c *Config) (string, error) {
	if v.KeyConfig == (KeyConfig{}) {
		return v.Text, nil
	}
	return v.KeyConfig.Read(c)
}
