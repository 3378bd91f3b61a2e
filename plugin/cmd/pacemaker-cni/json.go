package main

import "strings"

// This is the part of JSON that the plugin needs. encoding/json would make each waiting process
// a third larger.

// field returns the value of a field of a JSON object, unchanged, or "" if there is none. ok is
// false if the text is no object.
func field(object, name string) (value string, ok bool) {
	rest := blank(object)
	if !strings.HasPrefix(rest, "{") {
		return "", false
	}
	for rest = blank(rest[1:]); !strings.HasPrefix(rest, "}"); {
		key := valueLen(rest)
		if key < 2 || rest[0] != '"' {
			return "", false
		}
		is := rest[1:key-1] == name
		if rest = blank(rest[key:]); !strings.HasPrefix(rest, ":") {
			return "", false
		}
		rest = blank(rest[1:])
		end := valueLen(rest)
		if end == 0 {
			return "", false
		}
		if is {
			value = rest[:end]
		}
		switch rest = blank(rest[end:]); {
		case strings.HasPrefix(rest, ","):
			rest = blank(rest[1:])
		case !strings.HasPrefix(rest, "}"):
			return "", false
		}
	}
	return value, blank(rest[1:]) == ""
}

func blank(s string) string { return strings.TrimLeft(s, " \t\r\n") }

// valueLen returns the length in bytes of the JSON value at the beginning of s, or 0 if there is
// none. It does not check nested values.
func valueLen(s string) int {
	depth, inString := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			if inString = !inString; !inString && depth == 0 {
				return i + 1
			}
		case inString:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			if depth--; depth < 0 {
				return i // the end of the object or list around the value
			}
			if depth == 0 {
				return i + 1
			}
		case depth == 0 && strings.IndexByte(", \t\r\n", c) >= 0:
			return i // a number or a word before it
		}
	}
	if depth > 0 || inString {
		return 0
	}
	return len(s)
}

// text returns the value of a JSON string, or "" if it is no string or contains escapes.
func text(value string) string {
	if len(value) < 2 || value[0] != '"' || strings.ContainsRune(value, '\\') {
		return ""
	}
	return value[1 : len(value)-1]
}

// quoted returns s as a JSON string.
func quoted(s string) string {
	const hex = "0123456789abcdef"
	b := append(make([]byte, 0, len(s)+2), '"')
	for _, c := range []byte(strings.ToValidUTF8(s, "?")) {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}
