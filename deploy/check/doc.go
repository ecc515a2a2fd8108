// Command check reads docker-compose.yml, the Dockerfile and the Kubernetes
// manifests as Docker and Kubernetes would: every field by the types of
// compose-spec and of k8s.io/api, unknown ones refused, and what names something
// else must name something that is there; the Dockerfile by BuildKit's own rules
// and hadolint's. It needs neither an engine nor a cluster.
//
//	go run -C deploy/check .
package main
