"""Imports and exports sessions in this program's format and in other programs' formats."""
