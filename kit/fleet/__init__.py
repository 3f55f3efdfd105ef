"""Where the blocks of one plan run: hosts over SSH, clusters, clouds."""
