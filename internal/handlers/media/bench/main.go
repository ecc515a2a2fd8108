//go:build linux

package main

import (
	"context"
	"fmt"
	"image"
	"image/jpeg"
	_ "image/png"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/disintegration/imaging"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
)

func main() {
	if len(os.Args) != 4 && len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: bench ours|imaging FILE TIMES [FOLDER_TO_KEEP_RESULTS]\n       bench ssim "+
			"REFERENCE PICTURE\n       bench quality PICTURE FOLDER_OF_RESULTS EXTENSION")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(way, file, times string, keep ...string) error {
	switch {
	case way == "ssim":
		return similarity(file, times)
	case way == "quality" && len(keep) == 1:
		return quality(file, times, keep[0])
	}
	n, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	render := func(file string) error { return ours(file, keep) }
	if way == "imaging" {
		render = plain
	}
	if err := render(file); err != nil { // warm: tables, compiled modules
		return err
	}
	before := cpu()
	if err := twoWorkers(n, func() error { return render(file) }); err != nil {
		return err
	}
	fmt.Printf("%-14s %8.1f ms %6d MB\n", way, float64(cpu()-before)/float64(n), peak())
	return nil
}

func twoWorkers(n int, do func() error) error {
	work := make(chan int, n)
	for i := range n {
		work <- i
	}
	close(work)
	errs := make(chan error, 2)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for range work {
				if err := do(); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}

func ours(file string, keep []string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	maker := picture.Generator{Limits: picture.DefaultLimits(), Encoding: picture.Encoding{Quality: 80}}
	r, err := maker.Render(context.Background(), data, []picture.Spec{
		{Width: 150, Height: 150}, {Width: 300, Height: 300}, {Width: 800, Height: 800, Mode: picture.Fit}})
	if err != nil {
		return err
	}
	for _, dir := range keep {
		for i, name := range []string{"150", "300", "800"} {
			if err := os.WriteFile(dir+"/ours-"+name+"."+r.Renditions[i].Format.Extension(), r.Renditions[i].Data,
				0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// plain is disintegration/imaging as its manual shows it.
func plain(file string) error {
	img, err := imaging.Open(file, imaging.AutoOrientation(true))
	if err != nil {
		return err
	}
	for _, small := range []image.Image{imaging.Fill(img, 150, 150, imaging.Center, imaging.Lanczos),
		imaging.Fill(img, 300, 300, imaging.Center, imaging.Lanczos), imaging.Fit(img, 800, 800, imaging.Lanczos)} {
		if err := jpeg.Encode(io.Discard, small, &jpeg.Options{Quality: 80}); err != nil {
			return err
		}
	}
	return nil
}

func cpu() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return (u.Utime.Nano() + u.Stime.Nano()) / 1e6
}

func peak() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Maxrss / 1024
}
