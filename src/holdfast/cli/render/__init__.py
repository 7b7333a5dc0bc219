"""From responses of the gateway to text for a terminal, one module per noun."""
