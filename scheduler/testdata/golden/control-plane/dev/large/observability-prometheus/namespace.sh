# observability-prometheus on large, environment dev
export NAMESPACE='dev-large-observability-prometheus'
export WORKSPACE='platform-team'
