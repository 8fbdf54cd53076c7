"""The context engine: builds requests to the model from paths of entries, and limits their size."""
