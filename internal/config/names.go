package config

import (
	"fmt"
	"slices"
	"strings"
)

// Names are those of what a program has beyond this package, and a config may name.
type Names struct{ Providers, Engines []string }

func (n Names) provider(name string) error {
	if slices.Contains(n.Providers, name) {
		return nil
	}
	return fmt.Errorf("is %.40q; write one of %s", name, strings.Join(n.Providers, ", "))
}

func (n Names) engine(name string) error {
	if name == "" || slices.Contains(n.Engines, name) {
		return nil
	}
	return fmt.Errorf("%.40q must be %s", name, strings.Join(n.Engines, " or "))
}
