"""The blocks of the next request as a list: how they are arranged, what changing one costs, what one says."""
