package v1alpha1

import "time"

// Moment is a point in time as the user wrote it, in the format of RFC 3339, like
// "2026-11-27T00:00:00+01:00". The empty string is not a moment.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.,][0-9]+)?(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])$')",message="must be a moment as in RFC 3339, like \"2026-11-27T00:00:00+01:00\""
type Moment string

// Time returns the point in time. It returns the zero time if m is nil or not valid.
func (m *Moment) Time() (at time.Time) {
	if m != nil {
		at, _ = time.Parse(time.RFC3339, string(*m)) // it accepts more than the rule, like "2026-11-27T0:00:00Z"
	}
	return at
}
