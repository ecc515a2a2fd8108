package repository

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// What a repository consists of.
const (
	formatKey     = "format.txt"
	restoreKey    = "restore.sh"
	objectsFolder = "objects/"
	backupsFolder = "backups/"
	pendingFolder = "pending/"
	locksFolder   = "locks/"
)

// The limits of what is written, which bound what is read.
const (
	// pieceSize is how much of a file one object holds at most, unpacked.
	pieceSize = 4 << 20
	// maxObject bounds an object's bytes: what encryption adds to a piece is less.
	maxObject = pieceSize + 256<<10
	// maxName bounds the path of a file in bytes.
	maxName = 4096
	// maxLine bounds a line: the longest path with every byte escaped, and figures.
	maxLine = maxName*5 + 1024
)

// ErrDamaged says that bytes in the repository are not those that were written.
var ErrDamaged = errors.New("the repository is damaged")

// encrypted ends the names of objects that only an age identity opens.
const encrypted = ".age"

// Sum is a SHA-256.
type Sum [sha256.Size]byte

// newRun makes the part of all names that no other run has.
func newRun() string { return strings.ToLower(rand.Text()[:13]) }

func isRun(s string) bool {
	return len(s) == 13 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// objectName names an object by the sum of its bytes, as they are stored.
func objectName(sum Sum, run string, sealed bool) string {
	name := sum.String() + "-" + run
	if sealed {
		name += encrypted
	}
	return name
}

// runOf is the run that wrote an object.
func runOf(object string) string {
	_, run, _ := strings.Cut(strings.TrimSuffix(object, encrypted), "-")
	return run
}

// checkObject refuses what is no object's name.
func checkObject(name string) error {
	sum, run, found := strings.Cut(strings.TrimSuffix(name, encrypted), "-")
	if !found || !isSum(sum) || !isRun(run) {
		return fmt.Errorf("%w: %.100q is no name of an object", ErrDamaged, name)
	}
	return nil
}

func isSum(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// objectKey is where an object lies: in one of sixteen folders.
func objectKey(name string) string { return objectsFolder + name[:1] + "/" + name }

// objectOf is objectKey's reverse.
func objectOf(key string) (string, bool) {
	rest, found := strings.CutPrefix(key, objectsFolder)
	folder, name, two := strings.Cut(rest, "/")
	if !found || !two || checkObject(name) != nil || !strings.HasPrefix(name, folder) || len(folder) != 1 {
		return "", false
	}
	return name, true
}

const recordTime = "20060102T150405.000Z"

// recordID names a backup by the time it began and its record's bytes.
func recordID(started time.Time, stored []byte) string {
	sum := sha256.Sum256(stored)
	return started.UTC().Format(recordTime) + "-" + hex.EncodeToString(sum[:])
}

const recordEnd = ".zst"

// recordOf reads a backup's ID from the key of its record.
func recordOf(key, folder string) (id string, ok bool) {
	id, found := strings.CutPrefix(key, folder)
	if id, ok = strings.CutSuffix(id, recordEnd); !found || !ok {
		return "", false
	}
	at, sum, found := strings.Cut(id, "-")
	if _, err := time.Parse(recordTime, at); err != nil || !found || !isSum(sum) {
		return "", false
	}
	return id, true
}

// checkName refuses a path that could leave the folder it is restored into.
func checkName(name string) error {
	bad := name == "" || len(name) > maxName || strings.ContainsRune(name, 0)
	for part := range strings.SplitSeq(name, "/") {
		bad = bad || part == "" || part == "." || part == ".."
	}
	if bad {
		return fmt.Errorf("%w: %.200q is no path of a file in a backup: %w", ErrDamaged, name, fs.ErrInvalid)
	}
	return nil
}

// String is the sum in hexadecimal.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

func sumOf(b []byte) Sum { return sha256.Sum256(b) }

func isSealed(object string) bool { return strings.HasSuffix(object, encrypted) }
