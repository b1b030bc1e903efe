# hello-world-app-performance-test on large, environment dev
export WORKLOAD='hello-world-app'
export DEPLOYMENT_TARGET='hello-world-app-performance-test'
export MANIFESTS_REPO='https://git.example/kaizen/hello-world-gitops'
export MANIFESTS_BRANCH='dev'
export MANIFESTS_PATH='./performance-test'
