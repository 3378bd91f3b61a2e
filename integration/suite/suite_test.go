package suite

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFiguresStandUnderTheirHeading(t *testing.T) {
	t.Parallel()
	var f Figures
	assert.Empty(t, f.String())
	f.Note(t, "%d pods", 3)
	f.Note(t, "%d s", 4)
	assert.Equal(t, "\nMeasured:\n  TestFiguresStandUnderTheirHeading: 3 pods\n  TestFiguresStandUnderTheirHeading: 4 s\n", f.String())
}

func TestRepositoryIsWhereTheModuleIs(t *testing.T) {
	t.Parallel()
	assert.FileExists(t, Repository("go.mod"))
	assert.FileExists(t, Repository("integration", "go.mod"))
}
