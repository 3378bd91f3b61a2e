package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is the value of a flag that accepts one of two or more words.
type choice[T ~string] struct {
	value *T
	words []string
}

// Set implements pflag.Value.
func (c choice[T]) Set(s string) error {
	if !slices.Contains(c.words, s) {
		last := len(c.words) - 1
		return fmt.Errorf("must be %s or %s", strings.Join(c.words[:last], ", "), c.words[last])
	}
	*c.value = T(s)
	return nil
}

// String implements pflag.Value.
func (c choice[T]) String() string { return string(*c.value) }

// Type implements pflag.Value. Help shows it.
func (c choice[T]) Type() string { return strings.Join(c.words, "|") }

// addChoice adds a flag that accepts one of the words. The default is what value holds. short is
// the flag's letter, or empty.
func addChoice[T ~string](cmd *cobra.Command, value *T, name, short, usage string, words ...T) {
	c := choice[T]{value: value}
	for _, w := range words {
		c.words = append(c.words, string(w))
	}
	cmd.Flags().VarP(c, name, short, usage)
	if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag exists, so it cannot be
	}
}
