"""For authors of tests: the pytest plugin, snapshots of runs, generated inputs."""
