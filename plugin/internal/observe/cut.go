package observe

import "strings"

// Cut shortens a text to at most most bytes. It never splits a character.
func Cut(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "")
	}
	return text
}
