"""What Holdfast costs beside the bare limits of the machine and beside its peers: `make bench`."""
