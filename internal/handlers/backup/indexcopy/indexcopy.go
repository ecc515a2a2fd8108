package indexcopy

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Row is what the index knows of one manifest file.
type Row struct {
	Key      string          `json:"key"`
	Size     int64           `json:"size"`
	Modified int64           `json:"modified"` // Unix time in nanoseconds; 0 when unknown
	Tag      string          `json:"tag,omitempty"`
	Entry    json.RawMessage `json:"entry"`
}

// Bounds of what is read: 10,000 backups take 2 MB, 12 MB unpacked.
const (
	maxPacked   = 64 << 20
	maxUnpacked = 512 << 20
	maxRow      = 1 << 20
	maxHead     = 512
)

const (
	magic       = "cmsjobs backup index 1"
	signContext = magic + "\n"
)

// ErrUntrusted says that a copy is not signed by a key that the reader trusts.
var ErrUntrusted = errors.New("the copy of the index is not signed by a trusted key")

// Write packs and signs rows. name is how readers know the key.
func Write(rows []Row, name string, key ed25519.PrivateKey) ([]byte, error) {
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed)
	if err != nil {
		return nil, err
	}
	enc := json.NewEncoder(z)
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			return nil, errors.Join(fmt.Errorf("writing the row of %s: %w", r.Key, err), z.Close())
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	signature := ed25519.Sign(key, signed(packed.Bytes()))
	head := fmt.Sprintf("%s %s %s\n", magic, name, base64.StdEncoding.EncodeToString(signature))
	return append([]byte(head), packed.Bytes()...), nil
}

// signed is what a signature is about.
func signed(packed []byte) []byte { return append([]byte(signContext), packed...) }

// Read reads a copy and hands over each row. trusted gives the public key of a
// name, or nil when the reader does not trust it; then nothing is read (ErrUntrusted).
func Read(r io.Reader, trusted func(name string) ed25519.PublicKey, row func(Row)) error {
	in := bufio.NewReaderSize(io.LimitReader(r, maxPacked+1), maxHead)
	head, err := in.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("it is no copy of an index: %w", err)
	}
	rest, is := strings.CutPrefix(strings.TrimSuffix(string(head), "\n"), magic+" ")
	name, encoded, two := strings.Cut(rest, " ")
	signature, err := base64.StdEncoding.DecodeString(encoded)
	if !is || !two || err != nil {
		return errors.New("it is no copy of an index of this version")
	}
	key := trusted(name)
	if len(key) != ed25519.PublicKeySize {
		return fmt.Errorf("%w, but by %.80q", ErrUntrusted, name)
	}
	packed, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if len(packed) > maxPacked {
		return fmt.Errorf("it is larger than %d MiB", maxPacked>>20)
	}
	if !ed25519.Verify(key, signed(packed), signature) {
		return fmt.Errorf("%w: the signature is of something else", ErrUntrusted)
	}
	return unpack(packed, row)
}

func unpack(packed []byte, row func(Row)) error {
	z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderMaxWindow(16<<20), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	lines := bufio.NewScanner(io.LimitReader(z, maxUnpacked))
	lines.Buffer(nil, maxRow)
	for lines.Scan() {
		var r Row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("a row of the copy of the index: %w", err)
		}
		row(r)
	}
	return lines.Err()
}
