//go:build e2e

// Command yardstick is what the agent's memory and processor time are measured
// against: client-go's dynamic informer over the Kustomizations of a cluster,
// as it comes, and nothing else. It says "synced" once it holds all of them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/clientcmd"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := watch(ctx, os.Getenv("KUBECONFIG")); err != nil {
		fmt.Fprintln(os.Stderr, "yardstick:", err)
		return 1
	}
	return 0
}

func watch(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}).Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	fmt.Println("synced", len(informer.GetStore().ListKeys()))
	<-ctx.Done()
	factory.Shutdown()
	return nil
}
