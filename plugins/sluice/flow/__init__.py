"""The steps: one file each, one public entry each; pipeline.py states their order."""
