package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

func main() {
	project, err := compose("../../docker-compose.yml")
	if err == nil {
		fmt.Printf("docker-compose.yml: %d services\n", len(project.Services))
	}
	text, readErr := os.ReadFile("../kubernetes/cmsjobs.yaml")
	cluster, clusterErr := kubernetes(text)
	image, imageErr := os.ReadFile("../Dockerfile")
	if imageErr == nil {
		imageErr = dockerfile(image)
	}
	if err = errors.Join(err, readErr, clusterErr, imageErr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("kubernetes/cmsjobs.yaml: %d objects\nDockerfile: no complaints\n", cluster.objects)
}

// compose loads a project as Docker's own command does, and looks at what that
// leaves to the engine.
func compose(path string) (*types.Project, error) {
	options, err := cli.NewProjectOptions([]string{path}, cli.WithName("cmsjobs"))
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return nil, err
	}
	for name, s := range project.Services {
		if s.Image == "" && s.Build == nil {
			err = errors.Join(err, fmt.Errorf("the service %s has neither an image nor a build", name))
		}
		if s.Build != nil {
			if _, stat := os.Stat(s.Build.Context + "/" + s.Build.Dockerfile); stat != nil {
				err = errors.Join(err, fmt.Errorf("the service %s: %w", name, stat))
			}
		}
		for other, how := range s.DependsOn {
			if how.Condition == types.ServiceConditionHealthy && project.Services[other].HealthCheck == nil {
				err = errors.Join(err, fmt.Errorf("%s waits for %s to be healthy, which has no health check", name,
					other))
			}
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, stat := os.Stat(v.Source); stat != nil {
				err = errors.Join(err, fmt.Errorf("the service %s mounts what is not there: %w", name, stat))
			}
		}
	}
	return project, err
}

// objects are the manifests' objects of the kinds that we write.
type objects struct {
	objects     int
	deployments []appsv1.Deployment
	budgets     []policyv1.PodDisruptionBudget
	services    []corev1.Service
	maps        []corev1.ConfigMap
}

func kubernetes(text []byte) (o objects, err error) {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, failed := reader.Read()
		if errors.Is(failed, io.EOF) {
			break
		}
		if failed != nil {
			return o, failed
		}
		if err := o.add(document); err != nil {
			return o, err
		}
	}
	for _, d := range o.deployments {
		err = errors.Join(err, o.check(d))
	}
	return o, err
}

func (o *objects) add(document []byte) error {
	var kind metav1.TypeMeta
	if err := strict.Unmarshal(document, &kind); err != nil {
		return err
	}
	o.objects++
	switch kind.APIVersion + " " + kind.Kind {
	case "apps/v1 Deployment":
		return add(&o.deployments, document)
	case "policy/v1 PodDisruptionBudget":
		return add(&o.budgets, document)
	case "v1 Service":
		return add(&o.services, document)
	case "v1 ConfigMap":
		return add(&o.maps, document)
	}
	return fmt.Errorf("an object of the kind %s %s is not expected here", kind.APIVersion, kind.Kind)
}

func add[T any](list *[]T, document []byte) error {
	var object T
	if err := strict.UnmarshalStrict(document, &object); err != nil {
		return err
	}
	*list = append(*list, object)
	return nil
}

// check holds a deployment against what belongs to it.
func (o *objects) check(d appsv1.Deployment) (err error) {
	complain := func(format string, args ...any) {
		err = errors.Join(err, fmt.Errorf("the deployment %s: "+format, append([]any{d.Name}, args...)...))
	}
	pods := labels.Set(d.Spec.Template.Labels)
	if !selects(d.Spec.Selector, pods) {
		complain("it does not select its own pods")
	}
	if d.Spec.Replicas == nil || *d.Spec.Replicas < 2 {
		complain("fewer than two replicas make every update an outage")
	}
	for _, b := range o.budgets {
		if !selects(b.Spec.Selector, pods) {
			complain("the budget %s does not select its pods", b.Name)
		}
	}
	grace := time.Duration(0)
	for _, m := range o.maps {
		length, wrong := time.ParseDuration(m.Data["CMSJOBS_QUEUE_GRACE"])
		if wrong != nil {
			complain("CMSJOBS_QUEUE_GRACE: %v", wrong)
		}
		grace = max(grace, length)
	}
	if s := d.Spec.Template.Spec.TerminationGracePeriodSeconds; s == nil || time.Duration(*s)*time.Second <= grace {
		complain("terminationGracePeriodSeconds is not above the worker's own grace of %v", grace)
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		o.checkContainer(c, d.Spec.Template.Spec.Volumes, complain)
	}
	return err
}

// checkContainer holds a container against the volumes and services of its pod.
func (o *objects) checkContainer(c corev1.Container, volumes []corev1.Volume,
	complain func(format string, args ...any)) {
	if _, tag, tagged := strings.Cut(path.Base(c.Image), ":"); !tagged || tag == "latest" {
		complain("%s is another image every day", c.Image)
	}
	if c.ReadinessProbe == nil || c.LivenessProbe == nil || c.StartupProbe == nil {
		complain("%s lacks a probe", c.Name)
	}
	for _, m := range c.VolumeMounts {
		if !strings.Contains(fmt.Sprint(names(volumes)), " "+m.Name+" ") {
			complain("%s mounts %s, which is no volume", c.Name, m.Name)
		}
	}
	for _, s := range o.services {
		if !exposes(c, s) {
			complain("the service %s leads to a port that %s does not have", s.Name, c.Name)
		}
	}
}

func names(volumes []corev1.Volume) string {
	text := " "
	for _, v := range volumes {
		text += v.Name + " "
	}
	return text
}

func exposes(c corev1.Container, s corev1.Service) bool {
	for _, want := range s.Spec.Ports {
		found := false
		for _, have := range c.Ports {
			found = found || have.Name == want.TargetPort.StrVal || have.ContainerPort == want.TargetPort.IntVal
		}
		if !found {
			return false
		}
	}
	return true
}

func selects(s *metav1.LabelSelector, set labels.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && !selector.Empty() && selector.Matches(set)
}
