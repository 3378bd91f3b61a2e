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
			require.NoError(t, err, "the image is XML")
		}
	}
	for want, times := range map[string]int{
		`class="lost" x`:               3, // one belongs to the legend
		`class="ready" x`:              5,
		`<use href="#kill`:             3,
		`all ready 29.5 s`:             1,
		`stopped 70 s`:                 1,
		`herd-3&lt;script&gt;`:         2,
		`class="heading"`:              2,
		`class="sentence"`:             2,
		`>A &amp; B</text>`:            1,
		`>in one line</text>`:          1,
		`>busy &lt;machine&gt;</text>`: 1,
		`>Without pod-pacemaker: all 3 pods start at once<`:  1,
		`>With pod-pacemaker: 1 at a time, the others wait<`: 1,
		`>70 s</text>`:                 2,
		`>0</text>`:                    2,
		`(prefers-color-scheme: dark)`: 1,
	} {
		assert.Equal(t, times, strings.Count(text, want), want)
	}
	for _, outside := range []string{"https:", "src=", "@import", "<script", "<image", "ZgotmplZ"} {
		assert.NotContains(t, text, outside)
	}
}
