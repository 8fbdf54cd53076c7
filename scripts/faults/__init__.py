"""Kills the program while it works, thousands of times, makes every other fault, and looks at what is left.

``python -m scripts.faults`` runs every row, ``python -m scripts.faults restore --times 200`` one of them longer.
"""
