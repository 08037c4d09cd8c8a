"""What providers refuse of a history, as rules: answered with the provider's own 400."""
