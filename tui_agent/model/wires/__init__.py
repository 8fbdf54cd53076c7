"""The providers' request and answer formats ("wires"), one module each, and the HTTP client."""
