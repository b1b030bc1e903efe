# host-least on host, environment dev
export WORKLOAD='host'
export DEPLOYMENT_TARGET='host-least'
export MANIFESTS_REPO='https://git.example/host'
