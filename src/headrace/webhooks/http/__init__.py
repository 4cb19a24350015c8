"""An HTTP client for URLs chosen by users: addresses checked and pinned, time and bytes limited."""
