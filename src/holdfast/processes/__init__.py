"""Commands that outlive the gateway: started by a keeper, found again, followed, stopped. Knows nothing of the log."""
