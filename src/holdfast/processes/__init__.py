"""Commands that outlive us: started by a keeper, found again, followed, stopped. Knows nothing of the log."""
