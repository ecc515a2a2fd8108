package main

import (
	"os"
	"os/exec"
	"path/filepath"

	"filippo.io/age"
)

// programs are ours, and the peers that are installed.
func (b bench) programs() ([]program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	identity := filepath.Join(b.dir, "identity")
	if err := os.WriteFile(identity, []byte(key.String()+"\n"), 0o600); err != nil {
		return nil, err
	}
	own := func(identity string) func(step, repo, into string) []string {
		return func(step, _, _ string) []string {
			return []string{self, "-step", step, "-dir", b.dir, "-identity", identity}
		}
	}
	all := []program{
		{name: "cmsjobs", repo: "own", step: own("")},
		{name: "cmsjobs, encrypted", repo: "own-age", step: own(identity)},
	}
	if _, err := exec.LookPath("zstd"); err == nil {
		all = append(all, program{name: "tar and zstd -1", repo: "tar", step: b.tar})
	}
	if _, err := exec.LookPath("restic"); err == nil {
		all = append(all, program{name: "restic (encrypted)", repo: "restic", step: b.restic,
			env: []string{"RESTIC_PASSWORD=bench", "RESTIC_CACHE_DIR=" + filepath.Join(b.dir, "restic-cache"),
				"RESTIC_PROGRESS_FPS=0.01"}})
	}
	return all, nil
}

func shell(script string, args ...string) []string {
	return append([]string{"sh", "-euc", script, "sh"}, args...)
}

// tar writes one archive a step, and waits until it is on the disk, as the others do.
func (b bench) tar(step, repo, into string) []string {
	switch step {
	case "verify":
		return shell(`zstd -tq "$1/changed.tar.zst"`, repo)
	case "restore":
		return shell(`mkdir "$2"; zstd -dcq "$1/changed.tar.zst" | tar -xf - -C "$2"`, repo, into)
	}
	return shell(`tar -cf - -C "$1" . | zstd -1 -T0 -q -o "$2"; sync "$2"`, b.source(),
		filepath.Join(repo, step+".tar.zst"))
}

func (b bench) restic(step, repo, into string) []string {
	switch step {
	case "first":
		return shell(`restic -q -r "$1" init; restic -q -r "$1" backup "$2"`, repo, b.source())
	case "verify":
		return []string{"restic", "-q", "-r", repo, "check", "--read-data"}
	case "restore":
		return []string{"restic", "-q", "-r", repo, "restore", "latest", "--target", into}
	}
	return []string{"restic", "-q", "-r", repo, "backup", b.source()}
}
