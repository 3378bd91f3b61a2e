package rules

import (
	_ "embed" // for the schemas
	"encoding/json"
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// schema says what a value is. It has what the definitions use of OpenAPI.
type schema struct {
	Type, Format, Pattern        string
	IntOrString                  bool `json:"x-kubernetes-int-or-string"`
	Properties                   map[string]*schema
	AdditionalProperties, Items  *schema
	Required, Enum               []string
	Default, Example             constant
	Minimum, Maximum             *int64
	MinLength, MaxLength         *int
	MinItems, MaxItems           *int
	MinProperties, MaxProperties *int
	ListType                     string `json:"x-kubernetes-list-type"`
	Rules                        []rule `json:"x-kubernetes-validations"`
}

// rule is what must hold for a value. Message says so, or if it is not the same text each time, MessageExpression.
type rule struct {
	Rule, MessageExpression    expression
	Message, Reason, FieldPath string
}

// constant is a value of JSON, in which whole numbers are int64.
type constant struct{ value any }

func (c *constant) UnmarshalJSON(data []byte) error { return utiljson.Unmarshal(data, &c.value) }

// The schemas of the definitions, and of metadata, which these leave to the API server. They are read when the first object
// of the kind is checked: not every node has one. If one cannot be read, the tests fail.
var (
	//go:embed pacemakerconfigs.json
	configJSON []byte
	//go:embed startpolicies.json
	policyJSON []byte

	configSchema = sync.OnceValues(func() (s *schema, err error) { return s, json.Unmarshal(configJSON, &s) })
	policySchema = sync.OnceValues(func() (s *schema, err error) { return s, json.Unmarshal(policyJSON, &s) })
)
