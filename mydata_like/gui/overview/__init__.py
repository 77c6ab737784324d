"""The first page, part by part."""
