package journal

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxName is the length that journald allows for a field's name.
const maxName = 64

// taken are the names that the journal gives a meaning of its own.
var taken = map[string]bool{
	"MESSAGE": true, "MESSAGE_ID": true, "PRIORITY": true, "ERRNO": true,
	"CODE_FILE": true, "CODE_LINE": true, "CODE_FUNC": true,
	"SYSLOG_IDENTIFIER": true, "SYSLOG_FACILITY": true, "SYSLOG_PID": true,
	"SYSLOG_TIMESTAMP": true, "SYSLOG_RAW": true, "TID": true, "UNIT": true, "USER_UNIT": true,
}

// field turns a logrus field into one of the journal. "pod_uid" and "podUID"
// become POD_UID. A duration becomes a number of milliseconds, and its name ends
// in _MS.
func field(key string, value any) (name, text string) {
	name = fieldName(key)
	if d, ok := value.(time.Duration); ok {
		if !strings.HasSuffix(name, "_MS") {
			name += "_MS"
		}
		return name, strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)
	}
	return name, fieldText(value)
}

// fieldName spells a key in the letters that journald accepts. A name that the
// journal gives a meaning of its own, and one that would begin with an
// underscore or a digit, gets a prefix.
func fieldName(key string) string {
	var b strings.Builder
	word := false // inside a word of small letters
	for _, r := range key {
		switch {
		case r >= 'a' && r <= 'z':
			b.WriteRune(r - 'a' + 'A')
			word = true
			continue
		case r >= 'A' && r <= 'Z':
			if word {
				b.WriteByte('_')
			}
			b.WriteRune(r)
		case r >= '0' && r <= '9':
			b.WriteRune(r)
			continue
		default:
			b.WriteByte('_')
		}
		word = false
	}
	name := strings.Trim(b.String(), "_")
	if name == "" || name[0] <= '9' || taken[name] {
		name = "FIELD_" + name
	}
	// Room for the ending of a duration.
	return strings.TrimRight(name[:min(len(name), maxName-len("_MS"))], "_")
}

// fieldText spells a value: a list or a map as JSON, anything else as it prints.
func fieldText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case map[string]any, map[string]string, []string, []any:
		if text, err := json.Marshal(v); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(value)
}
