package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/containerd/platforms"
	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/solver/pb"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

// dockerfile holds a Dockerfile against the rules of "docker build --check",
// which BuildKit has as a library, and against those of hadolint that
// it has not and that can matter to a file like ours.
func dockerfile(text []byte) error {
	source := llb.NewSourceMap(nil, "Dockerfile", "Dockerfile", text)
	source.Definition = &llb.Definition{}
	caps := pb.Caps.CapSet(pb.Caps.All())
	report, err := dockerfile2llb.DockerfileLint(context.Background(), text, dockerfile2llb.ConvertOpt{
		SourceMap: source, LLBCaps: &caps, MetaResolver: offline{}})
	if err != nil {
		return err
	}
	if report.Error != nil {
		err = errors.New(report.Error.Message)
	}
	for _, w := range report.Warnings {
		err = errors.Join(err, fmt.Errorf("%s: %s", w.RuleName, w.Detail))
	}
	parsed, failed := parser.Parse(bytes.NewReader(text))
	if failed != nil {
		return errors.Join(err, failed)
	}
	stages, _, failed := instructions.Parse(parsed.AST, nil)
	if failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(err, hadolint(stages))
}

// offline says of every base image that it is there: no registry is asked.
type offline struct{}

func (offline) ResolveImageConfig(_ context.Context, ref string, o sourceresolver.Opt) (string, digest.Digest, []byte,
	error) {
	platform := platforms.DefaultSpec()
	if p := o.ImageOpt; p != nil && p.Platform != nil {
		platform = *p.Platform
	}
	config, err := json.Marshal(ocispecs.Image{Platform: platform})
	return ref, digest.FromBytes(config), config, err
}

// complaints are found faults, each with hadolint's number of the rule.
type complaints []error

func (c *complaints) add(rule, format string, args ...any) {
	*c = append(*c, fmt.Errorf(rule+": "+format, args...))
}

func hadolint(stages []instructions.Stage) error {
	var found complaints
	known := map[string]bool{"scratch": true}
	for _, stage := range stages {
		found.base(stage, known)
		found.commands(stage, known)
		known[stage.Name] = true
	}
	found.last(stages[len(stages)-1])
	return errors.Join(found...)
}

// base looks at what a stage begins with.
func (c *complaints) base(stage instructions.Stage, known map[string]bool) {
	if stage.Platform != "" && !strings.HasPrefix(stage.Platform, "$") {
		c.add("DL3029", "the platform of FROM %s is fixed", stage.BaseName)
	}
	name := path.Base(stage.BaseName)
	switch _, tag, tagged := strings.Cut(name, ":"); {
	case known[stage.BaseName]:
	case !tagged && !strings.Contains(name, "@"):
		c.add("DL3006", "%s has no tag", stage.BaseName)
	case tag == "latest":
		c.add("DL3007", "%s is another image every day", stage.BaseName)
	}
}

// commands looks at each instruction of a stage.
func (c *complaints) commands(stage instructions.Stage, known map[string]bool) {
	workdir, before := false, false
	for _, command := range stage.Commands {
		ran := false
		switch i := command.(type) {
		case *instructions.WorkdirCommand:
			workdir = true
			if !path.IsAbs(i.Path) && !strings.HasPrefix(i.Path, "$") {
				c.add("DL3000", "WORKDIR %s is relative", i.Path)
			}
		case *instructions.AddCommand:
			c.add("DL3020", "COPY instead of ADD %v", i.SourcePaths)
		case *instructions.CopyCommand:
			if i.From != "" && !known[i.From] {
				c.add("DL3022", "COPY --from=%s is no stage before", i.From)
			}
			if !path.IsAbs(i.DestPath) && !workdir {
				c.add("DL3045", "COPY to %s without WORKDIR", i.DestPath)
			}
		case *instructions.MaintainerCommand:
			c.add("DL4000", "MAINTAINER is a label now")
		case *instructions.RunCommand:
			c.run(strings.Join(i.CmdLine, " "), before)
			ran = true
		}
		before = ran
	}
}

// run looks at a shell command; again says that it follows another.
func (c *complaints) run(line string, again bool) {
	words := " " + line + " "
	for word, rule := range map[string]string{" cd ": "DL3003", " sudo ": "DL3004", " apt ": "DL3027",
		" dist-upgrade ": "DL3005", " wget ": "DL4001"} {
		if strings.Contains(words, word) {
			c.add(rule, "%q in RUN %s", strings.TrimSpace(word), line)
		}
	}
	if strings.Contains(words, " | ") && !strings.Contains(words, "pipefail") {
		c.add("DL4006", "the end of the first part of a pipe is not seen: %s", line)
	}
	if strings.Contains(words, " apt-get install ") && !strings.Contains(words, "=") {
		c.add("DL3008", "packages without versions: %s", line)
	}
	if again {
		c.add("DL3059", "a RUN after a RUN: %s", line)
	}
}

// last looks at the image that is shipped.
func (c *complaints) last(stage instructions.Stage) {
	user, health := "", false
	for _, command := range stage.Commands {
		switch i := command.(type) {
		case *instructions.UserCommand:
			user, _, _ = strings.Cut(i.User, ":")
		case *instructions.HealthCheckCommand:
			health = len(i.Health.Test) > 0 && i.Health.Test[0] != "NONE"
		case *instructions.CmdCommand:
			c.json("CMD", i.PrependShell)
		case *instructions.EntrypointCommand:
			c.json("ENTRYPOINT", i.PrependShell)
		}
	}
	if user == "" || user == "root" || user == "0" {
		c.add("DL3002", "the image runs as root")
	}
	if !health {
		c.add("DL3057", "no HEALTHCHECK")
	}
}

func (c *complaints) json(name string, shell bool) {
	if shell {
		c.add("DL3025", "%s needs a shell, which is not there", name)
	}
}
