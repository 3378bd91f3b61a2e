package observe

import "strings"

// Cut returns the text, shortened if it has more bytes than most. It never splits a character.
func Cut(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "")
	}
	return text
}
