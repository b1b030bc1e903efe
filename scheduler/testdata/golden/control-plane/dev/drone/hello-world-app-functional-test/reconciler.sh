# hello-world-app-functional-test on drone, environment dev
export WORKLOAD='hello-world-app'
export DEPLOYMENT_TARGET='hello-world-app-functional-test'
export MANIFESTS_REPO='https://git.example/kaizen/hello-world-gitops'
export MANIFESTS_BRANCH='dev'
export MANIFESTS_PATH='./functional-test'
