# hello-world-app-functional-test on drone, environment dev
export NAMESPACE='dev-drone-hello-world-app-functional-test'
export WORKSPACE='kaizen-app-team'
