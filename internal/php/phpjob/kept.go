package phpjob

import (
	"bytes"
	"encoding/json"
)

// Mark is the metadata of runs of PHP's jobs in the history.
const Mark = `{"origin":"php"}`

// Kept is what the history keeps of a payload when its job is done: no properties,
// for they may be secret and are many.
type Kept struct {
	Tags  []string `json:"tags,omitempty"`
	Batch string   `json:"batch,omitempty"`
}

// Keep is the Kept of a payload as JSON; nil where there is nothing to keep. Most
// payloads have neither models nor a batch: they are not read.
func Keep(raw []byte) []byte {
	if !bytes.Contains(raw, []byte("ModelIdentifier")) && !bytes.Contains(raw, []byte(`"tags"`)) &&
		!bytes.Contains(raw, []byte(`batchId\";s:`)) {
		return nil
	}
	j := Read(raw)
	if len(j.Tags) == 0 && j.Batch == "" {
		return nil
	}
	text, err := json.Marshal(Kept{j.Tags, j.Batch})
	if err != nil {
		return nil
	}
	return text
}
