# hello-world-app-performance-test on large, environment dev
export NAMESPACE='dev-large-hello-world-app-performance-test'
export WORKSPACE='kaizen-app-team'
