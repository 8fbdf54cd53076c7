"""Imports and exports sessions in this program's format and other programs' formats."""
