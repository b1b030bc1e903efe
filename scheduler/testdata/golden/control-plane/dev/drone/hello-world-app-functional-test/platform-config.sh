# hello-world-app-functional-test on drone, environment dev
export CLUSTER_NAME='Drone'
export DATABASE_URL='mysql://restricted-host:3306/mysqlrty123'
export ENVIRONMENT='Dev'
export REGION='East US'
export SOME_COMMON_ENVIRONMENT_VARIABLE='false'
