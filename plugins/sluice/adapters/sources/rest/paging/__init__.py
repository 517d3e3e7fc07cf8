"""Ways of paging, a module for each family: where a shard stands and an answer in; where it stands behind that answer out."""
