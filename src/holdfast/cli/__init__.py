"""The command line: an ordinary client of the gateway. Verbs are in `verbs/`, one file each."""
