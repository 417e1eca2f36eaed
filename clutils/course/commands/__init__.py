"""The course's commands: `lab` opens its notebooks; `book`, `slides` and `site` write it as files."""
