package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is the value of a flag that takes one of two or more words.
type choice[T ~string] struct {
	value *T
	words []string
}

// Set takes a word.
func (c choice[T]) Set(s string) error {
	if !slices.Contains(c.words, s) {
		last := len(c.words) - 1
		return fmt.Errorf("must be %s or %s", strings.Join(c.words[:last], ", "), c.words[last])
	}
	*c.value = T(s)
	return nil
}

// String returns the word.
func (c choice[T]) String() string { return string(*c.value) }

// Type returns the words, for the help.
func (c choice[T]) Type() string { return strings.Join(c.words, "|") }

// addChoice adds a flag that takes one of the words; what value holds is the
// default. short is a letter for it, or empty.
func addChoice[T ~string](cmd *cobra.Command, value *T, name, short, usage string, words ...T) {
	c := choice[T]{value: value}
	for _, w := range words {
		c.words = append(c.words, string(w))
	}
	cmd.Flags().VarP(c, name, short, usage)
	if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		// The flag was added a line above.
		panic(err)
	}
}
