"""Decoders of what providers stream: bytes to server-sent events, chunks to content blocks."""
