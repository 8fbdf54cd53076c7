"""The context engine: makes the model's requests from paths of entries, and limits their size."""
