"""The library's commands of `python -m clutils`, a file each: what it takes (`add_to`) and what it does."""
