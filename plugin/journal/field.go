package journal

import (
	"fmt"
	"regexp"
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

var (
	wordEnd   = regexp.MustCompile(`([a-z])([A-Z])`)
	noFieldOf = regexp.MustCompile(`[^A-Z0-9]`)
)

// field turns a logrus field into one of the journal. "pod_uid" and "podUID"
// become POD_UID. A duration becomes a number of milliseconds, and its name ends
// in _MS.
func field(key string, value any) (name, text string) {
	name = fieldName(key)
	switch v := value.(type) {
	case time.Duration:
		return strings.TrimSuffix(name, "_MS") + "_MS", strconv.FormatFloat(float64(v)/float64(time.Millisecond), 'f', -1, 64)
	case time.Time:
		return name, v.Format(time.RFC3339Nano)
	default:
		return name, fmt.Sprint(value)
	}
}

// fieldName spells a key in the letters that journald accepts. A name that the
// journal returns a meaning of its own, and one that would begin with an
// underscore or a digit, gets a prefix.
func fieldName(key string) string {
	name := noFieldOf.ReplaceAllString(strings.ToUpper(wordEnd.ReplaceAllString(key, "${1}_$2")), "_")
	name = strings.Trim(name, "_")
	if name == "" || name[0] <= '9' || taken[name] {
		name = "FIELD_" + name
	}
	// Room for the ending of a duration.
	return strings.TrimRight(name[:min(len(name), maxName-len("_MS"))], "_")
}
