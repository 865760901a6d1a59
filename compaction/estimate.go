package compaction

import (
	"encoding/json"
	"math"

	"github.com/mortise-dev/mortise/abi"
)

// Token costs of what is not text.
const (
	messageTokens = 4
	mediaTokens   = 1200
)

// Estimate returns about how many tokens the messages are.
func Estimate(messages []abi.Message) int64 {
	var n int64
	for i := range messages {
		n += EstimateMessage(&messages[i])
	}
	return n
}

// EstimateMessage returns about how many tokens a message is: text, thinking,
// tool calls with their arguments, and a fixed amount for media.
//
// Texts of prose, code, JSON, base64, hashes, rules of signs and of a dozen scripts
// are within 15 % of what the tokenizer o200k counts, each class by itself; see
// testdata/tokens. Other tokenizers count otherwise: a [Compactor] that observes
// bills corrects the estimate.
func EstimateMessage(m *abi.Message) int64 {
	n := int64(messageTokens)
	for i := range m.Content {
		switch b := &m.Content[i]; b.Type {
		case abi.BlockText, abi.BlockThinking:
			n += textTokens(b.Text)
		default:
			n += mediaTokens
		}
	}
	for i := range m.ToolCalls {
		n += messageTokens + textTokens(m.ToolCalls[i].Name) + textTokens(argumentText(m.ToolCalls[i].Arguments))
	}
	return n
}

// argumentText is how a model's provider writes arguments.
func argumentText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	out, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(out)
}

// Bounds on how far bills may move an estimate.
const (
	minFactor = 0.7
	maxFactor = 1.6
)

// calibration scales estimates by what a provider billed. The newest bill counts
// a quarter, so that one odd answer does not move the threshold much.
type calibration struct{ factor float64 }

func (c *calibration) learn(billed, estimated int64) {
	if billed <= 0 || estimated < 500 {
		return // too small to say anything
	}
	seen := min(max(float64(billed)/float64(estimated), minFactor), maxFactor)
	if c.factor == 0 {
		c.factor = seen
		return
	}
	c.factor += (seen - c.factor) / 4
}

func (c *calibration) apply(tokens int64) int64 {
	if c.factor == 0 {
		return tokens
	}
	return int64(math.Ceil(float64(tokens) * c.factor))
}
