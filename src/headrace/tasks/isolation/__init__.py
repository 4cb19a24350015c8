"""Handlers away from the loop: ``def`` ones in threads, ``isolation="process"`` ones in children that can be killed."""
