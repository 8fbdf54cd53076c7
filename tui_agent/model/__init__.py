"""The model layer: one protocol, a litellm host in its own process, the catalog."""
