# host-all on host, environment dev
export WORKLOAD='host'
export DEPLOYMENT_TARGET='host-all'
export MANIFESTS_REPO='https://git.example/host'
export MANIFESTS_BRANCH='dev'
export MANIFESTS_PATH='./it'\''s'
