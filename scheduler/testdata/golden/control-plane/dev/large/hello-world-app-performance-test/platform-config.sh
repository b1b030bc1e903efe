# hello-world-app-performance-test on large, environment dev
export CLUSTER_NAME='Large'
export DATABASE_URL='mysql://west:8806/mysql2'
export ENVIRONMENT='Dev'
export REGION='West US'
export SOME_COMMON_ENVIRONMENT_VARIABLE='false'
