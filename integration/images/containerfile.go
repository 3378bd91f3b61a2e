package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	copied     = regexp.MustCompile(`(?m)^COPY --from=build (/src/bin/pod-pacemaker .*) (\S+/)$`)
	entrypoint = regexp.MustCompile(`(?m)^ENTRYPOINT (\[.*\])$`)
)

// FromContainerfile writes the image of the repository's Containerfile, under that name, to the tar
// file tar. root is the repository, and `make build` has left the programs in its bin/.
func FromContainerfile(image, root, tar string) error {
	text, err := os.ReadFile(filepath.Join(root, "Containerfile"))
	if err != nil {
		return fmt.Errorf("image %s: %w", image, err)
	}
	from, entry := copied.FindStringSubmatch(string(text)), entrypoint.FindStringSubmatch(string(text))
	if from == nil || entry == nil {
		return errors.New("the Containerfile copies no programs, or names none to run")
	}
	programs := map[string]string{}
	for source := range strings.FieldsSeq(from[1]) {
		programs[path.Join(from[2], path.Base(source))] = filepath.Join(root, strings.TrimPrefix(source, "/src/"))
	}
	var command []string
	if err := json.Unmarshal([]byte(entry[1]), &command); err != nil || len(command) != 1 {
		return fmt.Errorf("the Containerfile's ENTRYPOINT %s is not one program: %w", entry[1], err)
	}
	return FromFiles(image, Content{Programs: programs, Entrypoint: command}, tar)
}
