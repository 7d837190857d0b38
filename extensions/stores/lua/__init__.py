"""The scripts that run inside Redis, as package data: `common.lua` stands before each of the others."""
