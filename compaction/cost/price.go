package cost

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Families of prices, for [Terms.Of].
const (
	// FamilyAnthropic has a cache of five minutes, FamilyAnthropicHour one of an hour.
	FamilyAnthropic     = "anthropic"
	FamilyAnthropicHour = "anthropic_1h"
	// FamilyOpenAI caches by itself, FamilyOpenAIWrites are its models from GPT-5.6 on, which charge for it.
	FamilyOpenAI       = "openai"
	FamilyOpenAIWrites = "openai_writes"
	// FamilyNone has no cache.
	FamilyNone = "none"
)

// Families lists the names of the families.
func Families() []string {
	return []string{FamilyAnthropic, FamilyAnthropicHour, FamilyOpenAI, FamilyOpenAIWrites, FamilyNone}
}

const minute = 60_000

// family returns the prices and the life of a cache, as of October 2026.
func family(name string) (read, write, life int64) {
	switch name {
	case FamilyAnthropicHour:
		return 100, 2000, 60 * minute
	case FamilyOpenAI:
		return 100, 1000, 10 * minute
	case FamilyOpenAIWrites:
		return 100, 1250, 30 * minute
	case FamilyNone:
		return 1000, 1000, 5 * minute
	default:
		return 100, 1250, 5 * minute
	}
}

// familyOf guesses the family from the name of a model.
func familyOf(model string) string {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	switch {
	case strings.HasPrefix(model, "gpt-5.6"), strings.HasPrefix(model, "gpt-6"):
		return FamilyOpenAIWrites
	case strings.HasPrefix(model, "gpt-"), strings.HasPrefix(model, "o1"), strings.HasPrefix(model, "o3"), strings.HasPrefix(model, "o4"):
		return FamilyOpenAI
	default:
		return FamilyAnthropic
	}
}

// Of completes terms: what is zero becomes what the host knows of the model, else what holds for the family, else the
// default. An empty family is guessed from the name of the model; a family that is named counts before the host's prices.
func (t Terms) Of(r *abi.AdmitRequest, named string) Terms {
	model, read, write := "", int64(0), int64(0)
	if c := r.Cache; c != nil {
		model, read, write = c.Model, c.ReadPerMille, c.WritePerMille
	}
	if named != "" {
		read, write = 0, 0
	} else {
		named = familyOf(model)
	}
	familyRead, familyWrite, life := family(named)
	t.Read, t.Write, t.LifeMS = first(t.Read, read, familyRead), first(t.Write, write, familyWrite), first(t.LifeMS, life)
	t.Steps, t.Margin = first(t.Steps, DefaultSteps), first(t.Margin, DefaultMargin)
	t.Gain, t.Growth, t.Force = first(t.Gain, DefaultGain), first(t.Growth, DefaultGrowth), first(t.Force, DefaultForce)
	return t
}

// first is the first of some values that is not zero.
func first(values ...int64) int64 {
	for _, v := range values {
		if v != 0 {
			return v
		}
	}
	return 0
}
