package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is the value of a flag that takes one of a few words.
type choice[T ~string] struct {
	value *T
	words []T
}

// Set takes a word.
func (c choice[T]) Set(s string) error {
	if !slices.Contains(c.words, T(s)) {
		return fmt.Errorf("must be %s", c.list(", ", " or "))
	}
	*c.value = T(s)
	return nil
}

// String returns the word.
func (c choice[T]) String() string {
	if c.value == nil {
		return ""
	}
	return string(*c.value)
}

// Type returns the words, for the help.
func (c choice[T]) Type() string { return c.list("|", "|") }

func (c choice[T]) list(comma, last string) string {
	words := make([]string, len(c.words))
	for i, w := range c.words {
		words[i] = string(w)
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], comma) + last + words[len(words)-1]
}

// addChoice adds a flag that takes one of the words; what value holds is the
// default.
func addChoice[T ~string](cmd *cobra.Command, value *T, name, usage string, words ...T) {
	addShortChoice(cmd, value, name, "", usage, words...)
}

func addShortChoice[T ~string](cmd *cobra.Command, value *T, name, short, usage string, words ...T) {
	c := choice[T]{value: value, words: words}
	cmd.Flags().VarP(c, name, short, usage)
	complete := make([]string, len(words))
	for i, w := range words {
		complete[i] = string(w)
	}
	if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(complete, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		// The flag was added a line above.
		panic(err)
	}
}
