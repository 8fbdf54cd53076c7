"""The providers' wire formats: requests as bytes, and answers as events."""
