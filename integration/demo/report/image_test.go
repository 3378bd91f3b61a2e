package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheImageHasBothTimelinesAndNeedsNothing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, WriteImage(&out, examplePage()))
	text := out.String()
	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			require.NoError(t, err, "it is XML")
		}
	}
	for want, times := range map[string]int{
		`class="lost" x`:               3, // one is the legend's
		`class="ready" x`:              5,
		`<use href="#kill`:             3,
		`all ready 29.5 s`:             1,
		`stopped 70 s`:                 1,
		`herd-3&lt;script&gt;`:         2,
		`class="heading"`:              2,
		`(prefers-color-scheme: dark)`: 1,
	} {
		assert.Equal(t, times, strings.Count(text, want), want)
	}
	for _, outside := range []string{"https:", "src=", "@import", "<script", "<image", "ZgotmplZ"} {
		assert.NotContains(t, text, outside)
	}
}
