# observability-prometheus on large, environment dev
export WORKLOAD='observability'
export DEPLOYMENT_TARGET='observability-prometheus'
export MANIFESTS_REPO='https://git.example/platform/services-gitops'
export MANIFESTS_BRANCH='dev'
export MANIFESTS_PATH='./prometheus'
