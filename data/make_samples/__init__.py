"""The samples whose course is scripted, some of it moved onto stated figures: stories, so not in the package."""
