// Package e2e holds tests of the whole on real parts: a kube-apiserver with its
// etcd, Flux' and Argo CD's controllers, Git over HTTP, Redis, a hub with its
// embedded engine and the agent, each a plain process on loopback. No container
// and no registry is needed; scripts/e2e-programs builds what is not ours.
//
// The tests are behind the build tag e2e: `make e2e` runs all of them, `make
// e2e-smoke` six. They share one cluster and keep apart by namespace and
// repository; those that stop something have a hub, an agent or a cluster of
// their own. README.md says how to write one.
package e2e
