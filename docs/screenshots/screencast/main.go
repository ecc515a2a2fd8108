package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/cmsjobs/cmsjobs/docs/screenshots/demosite"
)

const (
	width, height = 1280, 800 // of the window
	shown         = "960x600" // of the picture
	picture       = "docs/images/screencast.webp"
	largest       = 2 << 20
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "screencast:", err)
		cancel()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	convert, err := exec.LookPath("convert")
	if err != nil {
		return errors.New("ImageMagick is needed: apt-get install imagemagick")
	}
	site, err := demosite.Start(ctx)
	if err != nil {
		return err
	}
	defer site.Stop()
	if err := site.Quiet(ctx, 3*time.Minute); err != nil {
		return fmt.Errorf("waiting for the demo's jobs: %w", err)
	}
	browser, end, err := demosite.Browser(ctx, width, height)
	if err != nil {
		return err
	}
	defer end()
	if err := site.SignIn(browser); err != nil {
		return err
	}
	film := &film{base: site.Base, dir: site.Temp}
	if err := film.walk(browser); err != nil {
		return err
	}
	return film.write(ctx, convert)
}

// write makes one picture of the frames.
func (f *film) write(ctx context.Context, convert string) error {
	var args []string
	for _, frame := range f.frames {
		args = append(args, "-delay", fmt.Sprint(frame.lasts.Milliseconds()/10), frame.path)
	}
	args = append(args, "-resize", shown, "-loop", "0", "-strip", "-quality", "60", "-define", "webp:method=4", picture)
	if out, err := exec.CommandContext(ctx, convert, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("putting the frames together: %w\n%s", err, out)
	}
	info, err := os.Stat(picture)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d frames, %s, %d KiB\n", filepath.Base(picture), len(f.frames), f.length(), info.Size()>>10)
	if info.Size() > largest {
		return fmt.Errorf("%s has more than %d KiB", picture, largest>>10)
	}
	return nil
}
